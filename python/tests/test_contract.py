"""The contract of concurrent.futures, run against ThreadPoolExecutor and against a hub alike; then what only a hub does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import unittest
from concurrent import futures

from laboro_hub import Executor, HubError, LaboroError, PythonMismatch, TaskFailed, _calls, task


def square(x):
    return x * x


def add(a, b=0):
    return a + b


def fail(words):
    raise ValueError(words)


def nap(seconds):
    time.sleep(seconds)
    return seconds


class Contract:
    """What every executor does."""

    def test_submit_gives_results_and_exceptions(self):
        self.assertEqual(self.executor.submit(add, 1, b=2).result(60), 3)
        failed = self.executor.submit(fail, "no")
        with self.assertRaisesRegex(ValueError, "no"):
            failed.result(60)
        self.assertIsInstance(failed.exception(60), ValueError)
        self.assertTrue(failed.done() and not failed.cancelled())

    def test_map_keeps_the_order(self):
        self.assertEqual(list(self.executor.map(square, range(50))), [x * x for x in range(50)])
        self.assertEqual(list(self.executor.map(add, [1, 2], [3, 4], chunksize=2)), [4, 6])
        self.assertEqual(list(self.executor.map(square, [])), [])

    def test_map_raises_where_the_call_did(self):
        results = self.executor.map(lambda x: 1 // x, [1, 0, 1])
        self.assertEqual(next(results), 1)
        with self.assertRaises(ZeroDivisionError):
            next(results)

    def test_wait_and_as_completed(self):
        some = [self.executor.submit(square, x) for x in range(5)]
        done, left = futures.wait(some, timeout=60)
        self.assertEqual((len(done), len(left)), (5, 0))
        self.assertEqual(sorted(f.result() for f in futures.as_completed(some)), [0, 1, 4, 9, 16])

    def test_timeouts(self):
        slow = self.executor.submit(nap, 1.5)
        with self.assertRaises(futures.TimeoutError):
            slow.result(0.05)
        self.assertEqual(slow.result(60), 1.5)

    def test_callbacks_and_cancelled_futures(self):
        called = threading.Event()
        self.executor.submit(square, 2).add_done_callback(lambda _: called.set())
        self.assertTrue(called.wait(60))
        block = [self.executor.submit(nap, 1) for _ in range(4)]
        last = self.executor.submit(nap, 600)
        self.assertTrue(last.cancel())
        self.assertTrue(last.cancelled())
        with self.assertRaises(futures.CancelledError):
            last.result(0)
        futures.wait(block, 60)

    def test_nothing_after_shutdown(self):
        executor = self.make()
        future = executor.submit(square, 3)
        executor.shutdown()
        self.assertEqual(future.result(0), 9)
        with self.assertRaises(RuntimeError):
            executor.submit(square, 3)


class Threads(Contract, unittest.TestCase):
    def setUp(self):
        self.executor = self.make()
        self.addCleanup(self.executor.shutdown)

    def make(self):
        return futures.ThreadPoolExecutor(2)


class OnAHub(Contract, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.executor = Executor.local(2)

    @classmethod
    def tearDownClass(cls):
        cls.executor.shutdown()

    def make(self):
        return Executor.local(1)

    def test_a_remote_traceback_is_shown(self):
        error = self.executor.submit(fail, "far away").exception(60)
        self.assertIn("in fail", str(error.__cause__))

    def test_a_dead_runner_fails_its_call_alone(self):
        def die(x):
            if x == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return x

        calls = [self.executor.submit(die, x) for x in range(6)]
        futures.wait(calls, 60)
        self.assertIsInstance(calls[3].exception(), TaskFailed)
        self.assertEqual([c.result() for i, c in enumerate(calls) if i != 3], [0, 1, 2, 4, 5])

    def test_futures_as_arguments(self):
        plus = task(self.executor)(add)
        two = plus.submit(1, 1)
        self.assertEqual(plus.submit(two, b=plus.submit(two, 3)).result(60), 7)
        self.assertIsInstance(plus.submit(self.executor.submit(fail, "x"), 1).exception(60), LaboroError)

    def test_large_arguments_go_to_a_file_and_large_results_are_refused(self):
        self.assertEqual(self.executor.submit(len, b"x" * (2 << 20)).result(60), 2 << 20)
        with self.assertRaisesRegex(ValueError, "write it to a file"):
            self.executor.submit(bytes, 2 << 20).result(60)

    def test_calls_may_have_needs_of_their_own(self):
        wide = self.executor.using(slots=2, timeout=30)
        self.assertEqual(wide.submit(os.getenv, "LABORO_SLOTS").result(60), "2")
        self.assertEqual(list(wide.map(square, range(3))), [0, 1, 4])
        with self.assertRaisesRegex(TaskFailed, "took too long"):
            self.executor.using(timeout=0.2).submit(nap, 60).result(60)

    def test_a_call_that_the_hub_refuses_fails_alone(self):
        refused = self.executor.using(resources={"gpu": "many"}).submit(square, 3)
        self.assertIsInstance(refused.exception(60), HubError)
        self.assertEqual(self.executor.submit(square, 3).result(60), 9)

    def test_a_python_that_is_not_there_is_told(self):
        with Executor.local(1, python="python-nowhere") as executor:
            with self.assertRaisesRegex(TaskFailed, "python-nowhere"):
                executor.submit(square, 3).result(60)
        with self.assertRaisesRegex(ValueError, "give one of them"):
            Executor.local(1, python="python3", runner=["python3"])

    def test_a_call_can_be_awaited(self):
        async def both():
            return await asyncio.gather(self.executor.submit(square, 3), self.executor.submit(square, 4))

        self.assertEqual(asyncio.run(both()), [9, 16])

    def test_asyncio_runs_in_it(self):
        async def one():
            return await asyncio.get_running_loop().run_in_executor(self.executor, square, 5)

        self.assertEqual(asyncio.run(one()), 25)

    def test_another_minor_version_of_python_is_told(self):
        payload = _calls.dump_function(square).replace(b" %d.%d\n" % sys.version_info[:2], b" 3.7\n", 1)
        value = _calls.dump_arguments((3,), {})
        with self.assertRaisesRegex(PythonMismatch, "made with Python 3.7 and the worker runs Python"):
            self.executor._enqueue(payload, value, self.executor._how).result(60)

    def test_a_generator_is_fed_as_room_becomes_free(self):
        taken = []
        results = self.executor.map(square, (taken.append(x) or x for x in range(500)), buffersize=20)
        self.assertLessEqual(len(taken), 20)
        self.assertEqual(sum(results), sum(x * x for x in range(500)))


if __name__ == "__main__":
    unittest.main()
