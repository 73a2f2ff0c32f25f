"""The Octave runner at a real worker."""

from __future__ import annotations

import json
import os
import shutil
import unittest
from pathlib import Path

from laboro_hub import Hub
from laboro_hub._local import LocalHub

_SERVE = Path(__file__).resolve().parents[2] / "runners" / "octave" / "laboro_serve.m"

_OCTAVE = shutil.which("octave-cli")

if _OCTAVE is None and os.environ.get("LABORO_NOT_TRIED"):
    with open(os.environ["LABORO_NOT_TRIED"], "a") as told:
        print("python/tests: the Octave runner (octave-cli is not installed)", file=told)


@unittest.skipIf(_OCTAVE is None, "octave-cli is not installed")
class Octave(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.local = LocalHub(1)
        cls.hub = Hub(dir=cls.local.dir)

    @classmethod
    def tearDownClass(cls):
        cls.local.stop()

    def run_calls(self, code, values):
        runner = {"command": [_OCTAVE, "-qf", str(_SERVE)]}
        job = self.hub.flow([{"call": code, "values": values, "runner": runner}])
        job.wait(120)
        return job, list(job.results())

    def test_calls_share_a_process_and_nothing_of_their_workspace(self):
        code = """
            printf("call %d of %s\\n", index, getenv("LABORO_JOB"));
            persisted = exist("before", "var");
            before = 1;
            result = struct("pid", getpid(), "y", str2double(value)^2, "p", persisted);
        """
        job, results = self.run_calls(code, ["1", "2", "3"])
        found = [json.loads(result) for _, _, result in results]
        self.assertEqual([answer["y"] for answer in found], [1, 4, 9])
        self.assertEqual([answer["p"] for answer in found], [0, 0, 0])
        self.assertEqual(len({answer["pid"] for answer in found}), 1)
        self.assertEqual([job.output(n) for n in (1, 2, 3)], [b"call %d of %d\n" % (n, job.number) for n in (1, 2, 3)])

    def test_text_comes_back_as_it_is_and_errors_fail_their_call_alone(self):
        code = "if strcmp(value, 'bad'), error('no %s today', value); end; result = [value value];"
        job, results = self.run_calls(code, ["ab", "bad", "cd"])
        self.assertEqual(results, [(1, "done", b"abab"), (2, "failed", None), (3, "done", b"cdcd")])
        self.assertIn(b"error: no bad today", job.output(2))


if __name__ == "__main__":
    unittest.main()
