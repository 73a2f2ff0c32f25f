"""What is killed in the middle costs nothing: every result comes once, none is lost, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from laboro_hub import Executor, Hub, LaboroError
from laboro_hub._local import LocalHub, program

#: 20 000 in ./check --full.
CALLS = int(os.environ.get("LABORO_MAP_CALLS", "2000"))

_SRC = str(Path(__file__).resolve().parent.parent / "src")


def square(x):
    return x * x


def who(x):
    return x, os.getpid()


def until(what, condition, patience=40):
    give_up = time.monotonic() + patience
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.02)


def runs(pid):
    """Neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Script:
    """A program of its own in a directory of its own."""

    def __init__(self, test, text):
        self.dir = tempfile.TemporaryDirectory(prefix="laboro-script-")
        test.addCleanup(self.dir.cleanup)
        self.path = Path(self.dir.name, "script.py")
        self.path.write_text(text)

    def start(self, *words):
        environ = {**os.environ, "PYTHONPATH": _SRC, "LABORO_PROGRAM": program()}
        command = [sys.executable, "-W", "ignore", str(self.path), *map(str, words)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, cwd=self.dir.name
        )


class Kills(unittest.TestCase):
    def test_every_result_comes_once_whatever_is_killed(self):
        with Executor.local(2, attempts=5) as executor:
            processes = executor._local.processes
            killed, seen = [], []
            for number, runner in executor.map(who, range(CALLS), buffersize=400):
                seen.append(number)
                at = len(seen) * 8 // CALLS
                if at > len(killed) and at < 8:
                    victim = ("hub", "runner", "worker")[at % 3]
                    killed.append(victim)
                    try:
                        os.kill(runner if victim == "runner" else processes[victim].pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            self.assertEqual(seen, list(range(CALLS)))
            self.assertEqual({"hub", "worker", "runner"}, set(killed))

    def test_what_a_killed_worker_had_is_done_by_another(self):
        # The hub's grace time is a minute; a worker is waited for no longer than its own lease.
        with Executor.local(1, attempts=1) as executor:
            hub = executor._local
            executor.submit(square, 1).result(60)
            words = [program(), "worker", str(hub.dir), "-j", "1", "--with-tag", "other", "--lease", "1s"]
            workers = [subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) for _ in range(2)]
            try:
                tagged = executor.using(tags=["other"])
                slow = tagged.submit(_slow_once, str(hub.dir / "seen"))
                until("it runs", lambda: (hub.dir / "seen").exists())
                parent = int((hub.dir / "seen").read_text())
                victim = next(worker for worker in workers if _is_below(parent, worker.pid))
                victim.kill()
                self.assertEqual(slow.result(40), "again")
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()


def _slow_once(path):
    if os.path.exists(path):
        return "again"
    Path(path + ".new").write_text(str(os.getpid()))
    os.rename(path + ".new", path)
    time.sleep(600)


def _is_below(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return False


class Ends(unittest.TestCase):
    def test_a_killed_program_leaves_nothing_running(self):
        script = Script(self, _LOCAL)
        process = script.start()
        pids = [int(word) for word in process.stdout.readline().split()]
        directory = process.stdout.readline().strip()
        self.assertTrue(all(map(runs, pids)) and len(pids) == 3)
        process.kill()
        process.communicate()
        until("hub, worker and runner have ended", lambda: not any(map(runs, pids)))
        # What is left on the disk goes with the next one.
        LocalHub(1).stop()
        self.assertFalse(os.path.exists(directory))

    def test_ctrl_c_cancels_what_it_asked_for(self):
        hub = LocalHub(2)
        self.addCleanup(hub.stop)
        for kind in ("map", "submit", "wait"):
            with self.subTest(kind):
                process = Script(self, _INTERRUPTED).start(hub.dir, kind)
                job = int(process.stdout.readline())
                client = Hub(dir=hub.dir)
                until("it runs", lambda: client.job(job).refresh()["counts"]["running"] >= 2)
                process.send_signal(signal.SIGINT)
                try:
                    _, err = process.communicate(timeout=60)
                finally:
                    process.kill()
                self.assertIn("KeyboardInterrupt", err)
                counts = client.job(job).wait(30)["counts"]
                self.assertGreaterEqual(counts["cancelled"], 2)
                self.assertEqual(counts["done"] + counts["cancelled"], sum(counts.values()))


_LOCAL = """
import os
from laboro_hub import Executor
if __name__ == "__main__":
    executor = Executor.local(1)
    runner = executor.submit(os.getpid).result()
    processes = executor._local.processes
    print(processes["hub"].pid, processes["worker"].pid, runner)
    print(executor._local.dir, flush=True)
    __import__("time").sleep(600)
"""

_INTERRUPTED = """
import sys, time
from laboro_hub import Executor, Hub, Job
hub, kind = sys.argv[1:]
runner = [sys.executable, "-m", "laboro_hub.serve"]
env = {"PYTHONPATH": %r + ":" + ":".join(filter(None, sys.path))}
if kind == "wait":
    def told(job, *args):
        print(job.number, flush=True)
        return ended_within(job, *args)
    ended_within, Job._ended_within = Job._ended_within, told
    Hub(dir=hub).submit("sleep 600", values=range(1, 5)).wait()
executor = Executor(dir=hub, runner=runner, env=env)
if kind == "submit":
    # Without `with`: the end of the program cancels them.
    calls = [executor.submit(time.sleep, 600) for _ in range(4)]
    print(executor.job, flush=True)
    calls[0].result()
with executor:
    results = executor.map(time.sleep, [0, 600, 600, 600])
    next(results)
    print(executor.job, flush=True)
    list(results)
""" % _SRC


class Keys(unittest.TestCase):
    def test_a_map_goes_on_when_its_script_is_started_again(self):
        hub = LocalHub(2)
        self.addCleanup(hub.stop)
        script = Script(self, _SWEEP)
        first = script.start(hub.dir, 0)
        for _ in range(20):
            first.stdout.readline()
        first.kill()
        first.communicate()
        out, err = script.start(hub.dir, 1).communicate(timeout=120)
        self.assertEqual(out.split(), [str(x * x) for x in range(60)], err)
        # Once each, but for those under way when the first was killed.
        calls = Path(script.dir.name, "calls").read_text().split()
        self.assertEqual(sorted(set(map(int, calls))), list(range(60)))
        self.assertEqual(len(calls), 60)
        # Results of these calls are not taken for those of others.
        with Executor(dir=hub.dir, key="sweep-3") as other:
            with self.assertRaisesRegex(LaboroError, "call 1 of job 1 was made with other arguments before"):
                list(other.map(square, range(100, 160)))


_SWEEP = """
import os, sys
from laboro_hub import Executor
def note(x):
    with open("calls", "a") as file:
        print(x, file=file)
    return x * x
runner = [sys.executable, "-m", "laboro_hub.serve"]
env = {"PYTHONPATH": %r + ":" + ":".join(filter(None, sys.path))}
with Executor(dir=sys.argv[1], key="sweep-3", runner=runner, env=env, cwd=os.getcwd()) as executor:
    for result in executor.map(note, range(60), buffersize=10_000 if sys.argv[2] == "1" else 30):
        print(result, flush=True)
""" % _SRC


if __name__ == "__main__":
    unittest.main()
