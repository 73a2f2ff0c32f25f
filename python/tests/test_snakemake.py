"""A real Snakemake workflow with the plugin of this repository, at a hub of its own.

``LABORO_SNAKEMAKE_JOBS`` is how many jobs it has: 20, or 200 in ``./check --full``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from laboro_hub import Hub
from laboro_hub._local import LocalHub
from test_tools import needs

JOBS = int(os.environ.get("LABORO_SNAKEMAKE_JOBS", "20"))

_HERE = Path(__file__).resolve().parent.parent

_WORKFLOW = """
rule all:
    input: "sum.txt"

rule number:
    output: "numbers/{n}.txt"
    resources: runtime=5
    shell: "echo {wildcards.n} > {output}"

rule double:
    input: "numbers/{n}.txt"
    output: "doubles/{n}.txt"
    group: "pairs"
    shell: "echo $((2 * $(cat {input}))) > {output}"

rule check:
    input: "doubles/{n}.txt"
    output: "checks/{n}.txt"
    group: "pairs"
    shell: "grep -q . {input} && cp {input} {output}"

rule sum:
    input: expand("checks/{n}.txt", n=range(COUNT))
    output: "sum.txt"
    threads: 2
    resources: mem_mb=2000, laboro_tags="special", laboro_resources="licence=1"
    shell: "cat {input} | paste -sd+ | bc > {output}; echo $LABORO_SLOTS $LABORO_TASK > needs.txt"

rule bad:
    output: "never.txt"
    shell: "echo words of the failure >&2; exit 7"

rule endless:
    output: "endless.txt"
    shell: "touch began; sleep 1000"
"""


@needs("snakemake")
class Workflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.local = LocalHub(2)
        cls.hub = Hub(dir=cls.local.dir)
        words = ["worker", str(cls.local.dir), "-j", "2", "--with-tag", "special", "--with", "licence=1"]
        cls.special = cls.local._start(words)

    @classmethod
    def tearDownClass(cls):
        cls.special.kill()
        cls.special.wait()
        cls.local.stop()

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.dir = Path(place.name)
        # Number, then double and check as one group, then the sum.
        self.numbers = max(1, (JOBS - 1) // 2)
        (self.dir / "Snakefile").write_text(_WORKFLOW.replace("COUNT", str(self.numbers)))

    def start(self, *words):
        paths = [_HERE / "src", _HERE / "snakemake-executor-plugin-laboro" / "src"]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, "-m", "snakemake", "--executor", "laboro"]
        command += ["--laboro-dir", str(self.local.dir), "--jobs", "500", "--latency-wait", "20", *words]
        return subprocess.Popen(
            command, cwd=self.dir, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def newest(self):
        return self.hub.job(self.hub.jobs(1)[0]["job"])

    def test_all_of_it_runs_and_what_fails_is_told(self):
        process = self.start("--keep-going", "all", "never.txt")
        out, _ = process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 1, out)
        self.assertEqual(int((self.dir / "sum.txt").read_text()), self.numbers * (self.numbers - 1), out)
        job = self.newest()
        self.assertEqual(job.wait(60)["counts"] | {"done": 2 * self.numbers + 1, "failed": 1}, job.refresh()["counts"])
        failed = next(task for task in job.tasks() if task["state"] == "failed")
        number = f"{job.number}/{failed['task']}"
        self.assertIn(f"Task {number} failed: exit 1; `laboro logs {number}`", out)
        log = (self.dir / ".snakemake" / "laboro_logs" / f"{job.number}-{failed['task']}.log").read_text()
        self.assertIn("words of the failure", log)
        slots, name = (self.dir / "needs.txt").read_text().split()
        self.assertEqual((slots, name.split("-")[0]), ("2", "sum"))

    def start_endless(self, *words):
        (self.dir / "began").unlink(missing_ok=True)
        process = self.start(*words, "endless.txt")
        give_up = time.monotonic() + 120
        while not (self.dir / "began").exists() and process.poll() is None and time.monotonic() < give_up:
            time.sleep(0.1)
        return process

    def test_ctrl_c_cancels_what_runs_and_the_next_run_what_a_killed_one_left(self):
        process = self.start_endless()
        process.kill()
        process.communicate()
        left = self.newest()
        again = self.start_endless("--rerun-incomplete", "--nolock")
        self.assertEqual([task["state"] for task in left.tasks()], ["cancelled"])
        again.send_signal(signal.SIGINT)
        out, _ = again.communicate(timeout=120)
        self.assertNotEqual(again.returncode, 0)
        job = self.newest()
        self.assertNotEqual(job.number, left.number)
        self.assertEqual(job.wait(60)["state"], "cancelled", out)


if __name__ == "__main__":
    unittest.main()
