"""Other tools on a hub, used as their manuals show: joblib, scikit-learn, pandas, tqdm, Parsl, aiida-hyperqueue.

What is not installed is skipped, and told in ``LABORO_NOT_TRIED``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

from laboro_hub import Executor, Hub, register_joblib
from laboro_hub._local import LocalHub, program


def needs(*modules):
    """Skips a test without them."""
    missing = []
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:
            missing.append(module)
    if missing:
        told = os.environ.get("LABORO_NOT_TRIED")
        if told:
            with open(told, "a") as file:
                print(f"python/tests: {', '.join(missing)} is not installed", file=file)
    return unittest.skipIf(missing, f"{missing} is not installed")


def square(x):
    return x * x


def fail(x):
    raise ValueError(x)


@needs("joblib")
class Joblib(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.executor = Executor.local(2)
        register_joblib(cls.executor)

    @classmethod
    def tearDownClass(cls):
        cls.executor.shutdown()

    def test_parallel_as_its_manual_shows(self):
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="laboro", n_jobs=2):
            results = Parallel()(delayed(square)(n) for n in range(300))
            self.assertEqual(results, [n * n for n in range(300)])
            unordered = Parallel(return_as="generator_unordered")(delayed(square)(n) for n in range(20))
            self.assertEqual(sorted(unordered), [n * n for n in range(20)])
            with self.assertRaisesRegex(ValueError, "7"):
                Parallel()(delayed(fail)(7) for _ in range(3))
            # What it had still to do is cancelled, so that the next one does not wait for it.
            with self.assertRaisesRegex(ValueError, "7"):
                Parallel(batch_size=1, pre_dispatch="all")([delayed(fail)(7)] + 4 * [delayed(time.sleep)(600)])
            # And it goes on after that.
            self.assertEqual(Parallel(n_jobs=-1)(delayed(square)(n) for n in (2, 3)), [4, 9])

    def test_all_slots_are_those_of_workers_that_are_there(self):
        import joblib

        with Executor(dir=self.executor._local.dir, group="default", runner=["unused"]) as executor:
            register_joblib(executor)
            try:
                with joblib.parallel_config(backend="laboro"):
                    self.assertEqual(joblib.effective_n_jobs(-1), 2)
            finally:
                register_joblib(self.executor)

    @needs("sklearn")
    def test_a_grid_search_finds_what_it_finds_without_a_hub(self):
        from joblib import parallel_config
        from sklearn.datasets import load_iris
        from sklearn.model_selection import GridSearchCV
        from sklearn.svm import SVC

        features, kinds = load_iris(return_X_y=True)
        grid = {"C": [0.1, 1, 10], "kernel": ["linear", "rbf"]}

        def search():
            return GridSearchCV(SVC(), grid, cv=5, n_jobs=2).fit(features, kinds)

        with parallel_config(backend="laboro"):
            there = search()
        here = GridSearchCV(SVC(), grid, cv=5).fit(features, kinds)
        self.assertEqual(there.best_params_, here.best_params_)
        self.assertEqual(
            there.cv_results_["mean_test_score"].tolist(), here.cv_results_["mean_test_score"].tolist()
        )
        self.assertGreater(there.best_score_, 0.95)


class Notebooks(unittest.TestCase):
    @needs("pandas")
    def test_tables_are_those_of_pandas(self):
        import pandas

        hub = LocalHub(2)
        self.addCleanup(hub.stop)
        job = Hub(dir=hub.dir).submit("exit {}", values=[0, 0, 1])
        job.wait(60)
        table = job.table()
        self.assertIsInstance(table, pandas.DataFrame)
        self.assertEqual(table["state"].value_counts().to_dict(), {"done": 2, "failed": 1})

    @needs("tqdm")
    def test_a_bar_shows_how_far_it_is(self):
        from tqdm import tqdm

        with Executor.local(2) as executor:
            shown = io.StringIO()
            results = list(tqdm(executor.map(square, range(30)), total=30, file=shown))
            self.assertEqual(results[-1], 29 * 29)
            self.assertIn("30/30", shown.getvalue())
            job = Hub(dir=executor._local.dir).submit("true", values=range(1, 11))
            shown = io.StringIO()
            with contextlib.redirect_stderr(shown):
                job.wait(60, progress=True)
            self.assertIn("10/10", shown.getvalue())


@needs("parsl")
class Parsl(unittest.TestCase):
    def test_apps_as_its_manual_shows(self):
        import parsl
        from parsl import bash_app, python_app
        from parsl.config import Config

        from laboro_hub.parsl import LaboroExecutor

        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)

        @python_app
        def pi(num_points):
            from random import random

            inside = 0
            for _ in range(num_points):
                x, y = random(), random()
                if x**2 + y**2 < 1:
                    inside += 1
            return inside * 4 / num_points

        @python_app
        def mean(a, b, c):
            return (a + b + c) / 3

        @bash_app
        def hello(message, stdout=None):
            return f"echo {message}"

        @python_app
        def raises():
            raise KeyError("lost")

        @python_app
        def slots(parsl_resource_specification={}):
            import os

            return os.environ["LABORO_SLOTS"]

        config = Config(executors=[LaboroExecutor(local=2)], run_dir=place.name, initialize_logging=False)
        with parsl.load(config):
            a, b, c = pi(10**4), pi(10**4), pi(10**4)
            self.assertAlmostEqual(mean(a, b, c).result(timeout=60), 3.14, delta=0.2)
            out = os.path.join(place.name, "hello.txt")
            self.assertEqual(hello("world", stdout=out).result(timeout=60), 0)
            self.assertEqual(Path(out).read_text(), "world\n")
            with self.assertRaisesRegex(KeyError, "lost"):
                raises().result(timeout=60)
            wide = slots(parsl_resource_specification={"cores": 2, "running_time_min": 1})
            self.assertEqual(wide.result(timeout=60), "2")
            with self.assertRaisesRegex(Exception, "Invalid Resource"):
                slots(parsl_resource_specification={"floppies": 1}).result(timeout=60)
        parsl.clear()


@needs("aiida", "aiida_hyperqueue")
class Aiida(unittest.TestCase):
    def test_its_scheduler_speaks_to_our_hq(self):
        from aiida.common.datastructures import CodeRunMode
        from aiida.schedulers import JobState
        from aiida.schedulers.datastructures import JobTemplate, JobTemplateCodeInfo
        from aiida_hyperqueue.scheduler import HyperQueueScheduler

        hub = LocalHub(1)
        self.addCleanup(hub.stop)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        subprocess.run([program(), "hq", "install", f"{place.name}/bin"], check=True, stderr=subprocess.DEVNULL)
        environ = {**os.environ, "PATH": f"{place.name}/bin:{os.environ['PATH']}", "LABORO_DIR": str(hub.dir)}

        def sh(line, dir=place.name):
            ran = subprocess.run(
                ["bash", "-c", line], cwd=dir, env=environ, capture_output=True, text=True, timeout=60
            )
            return ran.returncode, ran.stdout, ran.stderr

        scheduler = HyperQueueScheduler()

        def submit(name, words):
            dir = Path(place.name, name)
            dir.mkdir()
            template = JobTemplate()
            template.shebang = "#!/bin/bash"
            template.job_name = name
            template.uuid = str(uuid.uuid4())
            template.sched_output_path, template.sched_error_path = "_out.txt", "_err.txt"
            template.job_resource = scheduler.create_job_resource(num_cpus=1, memory_mb=64)
            template.max_wallclock_seconds = 3600
            code = JobTemplateCodeInfo()
            code.cmdline_params = words
            template.codes_info = [code]
            template.codes_run_mode = CodeRunMode.SERIAL
            (dir / "_aiidasubmit.sh").write_text(scheduler.get_submit_script(template))
            return scheduler._parse_submit_output(*sh(scheduler._get_submit_command("_aiidasubmit.sh"), dir))

        def states():
            found = scheduler._parse_joblist_output(*sh(scheduler._get_joblist_command()))
            return {info.job_id: info.job_state for info in found}

        long, short = submit("long", ["sleep", "1000"]), submit("short", ["echo", "hello"])
        give_up = time.monotonic() + 60
        while states() != {long: JobState.RUNNING, short: JobState.QUEUED} and time.monotonic() < give_up:
            time.sleep(0.1)
        self.assertEqual(states(), {long: JobState.RUNNING, short: JobState.QUEUED})
        self.assertTrue(scheduler._parse_kill_output(*sh(scheduler._get_kill_command(long))))
        while states() and time.monotonic() < give_up:
            time.sleep(0.1)
        self.assertEqual(states(), {})
        self.assertEqual(Path(place.name, "short", "_out.txt").read_text(), "hello\n")


if __name__ == "__main__":
    unittest.main()
