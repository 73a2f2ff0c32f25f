"""Jobs of commands through the package: over TLS and the unix socket, events, asyncio, tables and notebooks."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import unittest

from laboro_hub import AsyncHub, Executor, Hub, HubError, HubUnreachable
from laboro_hub._local import LocalHub


class OfAHub(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.local = LocalHub(2)
        cls.hub = Hub(dir=cls.local.dir)

    @classmethod
    def tearDownClass(cls):
        cls.local.stop()

    def access_by_tls(self, change=lambda text: text):
        """The access file without its socket, as it would be on another machine."""
        text = (self.local.dir / "access.toml").read_text()
        text = re.sub(r"(?m)^socket\s*=.*\n", "", text)
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.addCleanup(file.close)
        file.write(change(text))
        file.flush()
        return file.name


class Commands(OfAHub):
    def test_a_job_has_results_output_and_tasks(self):
        job = self.hub.submit('echo out {}; echo -n {}{} > "$LABORO_RESULT"', values=["a", "b"], name="letters")
        self.assertEqual(job.wait(60)["state"], "done")
        self.assertEqual(list(job.results()), [(1, "done", b"aa"), (2, "done", b"bb")])
        self.assertEqual(job.output(2, "out"), b"out b\n")
        self.assertEqual([task["state"] for task in job.tasks()], ["done", "done"])
        self.assertIn(job.number, [known["job"] for known in self.hub.jobs()])

    def test_a_flow_waits_for_what_is_before(self):
        tasks = [
            {"name": "first-of-flow", "command": ["true"]},
            {"name": "second-of-flow", "command": ["false"], "after": ["first-of-flow"]},
        ]
        job = self.hub.flow(tasks, name="flow")
        self.assertEqual(job.wait(60)["state"], "failed")
        self.assertEqual([state for _, state, _ in job.results()], ["done", "failed"])

    def test_a_wrong_request_is_refused_in_the_words_of_the_hub(self):
        with self.assertRaises(HubError) as refused:
            self.hub.submit("true", slots=-1)
        self.assertEqual((refused.exception.status, refused.exception.reason), (400, "bad_value"))
        with self.assertRaises(HubError) as refused:
            self.hub.job(999_999).refresh()
        self.assertEqual(refused.exception.status, 404)
        with self.assertRaises(TimeoutError):
            self.hub.submit("sleep 5").wait(0.2)


class OverTls(OfAHub):
    def test_everything_works_with_the_address_alone(self):
        access = self.access_by_tls()
        hub = Hub(access)
        self.assertIsNone(hub.transport.access.socket)
        job = hub.submit(["true"])
        self.assertEqual(job.wait(60)["state"], "done")
        runner = [sys.executable, "-m", "laboro_hub.serve"]
        env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        with Executor(access, runner=runner, env=env) as executor:
            self.assertEqual(list(executor.map(abs, range(-50, 0))), list(range(50, 0, -1)))

    def test_another_certificate_or_token_is_refused(self):
        other = LocalHub(1)
        self.addCleanup(other.stop)
        port = f"127.0.0.1:{other.ports[0]}"
        elsewhere = self.access_by_tls(lambda text: re.sub(r'(?m)^http\s*=.*$', f'http = "{port}"', text))
        with self.assertRaisesRegex(HubUnreachable, "another certificate"):
            Hub(elsewhere).jobs()
        wrong = self.access_by_tls(lambda text: re.sub(r'(?m)^(token\s*=\s*")..', r"\1zz", text))
        with self.assertRaises(HubError) as refused:
            Hub(wrong).jobs()
        self.assertEqual(refused.exception.status, 401)


class Watching(OfAHub):
    def test_events_come_as_they_happen_and_over_a_restart_of_the_hub(self):
        job = self.hub.submit("sleep 0.2", values=range(1, 4))
        job.wait(60)
        events = self.hub.watch()
        self.addCleanup(events.close)
        first = self.hub.submit("true")
        self.assertTrue(_follow(self.hub, events, first.number))
        self.local.processes["hub"].kill()
        second = self.hub.transport.retrying("POST", "jobs", {"key": "again", "tasks": [{"command": ["true"]}]})
        self.assertTrue(_follow(self.hub, events, second["job"]))

    def test_results_are_followed_over_a_restart_of_the_hub(self):
        for order in ("index", "end"):
            job = self.hub.submit("echo -n {} > $LABORO_RESULT; sleep 0.3", values=range(1, 7))
            found = []
            for end in job.results(follow=True, order=order):
                found.append(end)
                if len(found) == 2:
                    self.local.processes["hub"].kill()
            self.assertEqual(sorted(found), [(n, "done", b"%d" % n) for n in range(1, 7)])

    def test_asyncio_has_the_same(self):
        async def all_of_it():
            hub = AsyncHub(dir=self.local.dir)
            seen = []

            async def watch():
                async for event in hub.watch():
                    seen.append(event)
                    if event["kind"] == "tasks" and event.get("state") == "done":
                        return

            watching = asyncio.create_task(watch())
            await asyncio.sleep(0)
            job = await hub.submit("echo {} > $LABORO_RESULT", ["x", "y"], name="async")
            ended = await hub.wait(job, 60)
            results = await hub.results(job)
            long = await hub.submit(["sleep", "600"])
            await hub.cancel(long)
            # The stream may have been opened after all of that.
            while not watching.done():
                await hub.submit(["true"])
                await asyncio.sleep(0.1)
            await watching
            with self.assertRaises(TimeoutError):
                await hub.wait(await hub.submit(["sleep", "3"]), 0.1)
            return ended, results, await hub.wait(long, 60), await hub.jobs(), seen

        ended, results, cancelled, jobs, seen = asyncio.run(all_of_it())
        self.assertEqual((ended["state"], cancelled["state"]), ("done", "cancelled"))
        self.assertEqual([result for _, _, result in results], [b"x\n", b"y\n"])
        self.assertIn("async", [job["name"] for job in jobs])
        self.assertTrue(seen)


def _follow(hub, events, job):
    for event in events:
        if event.get("job") == job and event.get("state") == "done":
            return True
        # What happened before a gap is not told.
        if event["kind"] == "gap" and hub.job(job).refresh()["state"] == "done":
            return True
    return False


class Shown(OfAHub):
    def test_a_job_is_a_small_table(self):
        job = self.hub.submit("exit {}", values=[0, 1], name="a <b>")
        job.wait(60)
        self.assertEqual(
            repr(job).split("\n"),
            [f"job     {job.number}", "name    a <b>", "state   failed", "done    1", "failed  1"],
        )
        self.assertIn("<tr><th>name</th><td>a &lt;b&gt;</td></tr>", job._repr_html_())
        self.assertIn("<tr><th>failed</th><td>1</td></tr>", job._repr_html_())

    def test_a_table_of_its_tasks(self):
        job = self.hub.submit("exit {}", values=[0, 3])
        job.wait(60)
        table = job.table()
        rows = table.to_dict("records") if hasattr(table, "to_dict") else table
        self.assertEqual([row["state"] for row in rows], ["done", "failed"])
        self.assertEqual([row["worker"] for row in rows], ["local", "local"])
        self.assertTrue(all(row["wall_us"] >= 0 for row in rows))


if __name__ == "__main__":
    unittest.main()
