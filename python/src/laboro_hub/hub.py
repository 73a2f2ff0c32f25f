"""A hub as a client sees it: jobs of commands, what becomes of them, what they gave back."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _access, _http
from .errors import LaboroError

Command = Union[str, List[str]]


class Job:
    """A job at a hub. Its ``repr`` is a small table of how far it is."""

    def __init__(self, hub: "Hub", number: int) -> None:
        self.hub, self.number = hub, number

    def refresh(self) -> Dict[str, Any]:
        """What the hub knows of it now."""
        return self.hub.request("GET", f"jobs/{self.number}")

    def wait(self, timeout: Optional[float] = None, progress: bool = False) -> Dict[str, Any]:
        """Waits until it has ended. Ctrl-C cancels it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        bar = _bar(f"job {self.number}") if progress else None
        try:
            while True:
                left = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"job {self.number} has not ended")
                path = f"wait?jobs={self.number}&timeout_ms={int(left * 1000)}"
                answer = self.hub.request("GET", path)
                job = answer["jobs"][0]
                if bar is not None:
                    _advance(bar, job["counts"])
                if answer["finished"]:
                    return job
        except KeyboardInterrupt:
            self.cancel()
            raise
        finally:
            if bar is not None:
                bar.close()

    def cancel(self, tasks: Optional[str] = None) -> None:
        self.hub.request("POST", f"jobs/{self.number}/cancel", {"tasks": tasks} if tasks else {})

    def tasks(self) -> Iterator[Dict[str, Any]]:
        """All tasks by number."""
        start: Optional[int] = 1
        while start is not None:
            page = self.hub.request("GET", f"jobs/{self.number}/tasks?from={start}&limit=1000")
            yield from page["tasks"]
            start = page["next"]

    def table(self) -> Any:
        """Tasks with their last attempts: a pandas table if pandas is there, else a list of dictionaries."""
        rows = []
        for task in self.tasks():
            last = (task["attempts"] or [{}])[-1]
            used = last.get("used") or {}
            rows.append(
                {
                    "task": task["task"],
                    "name": task["name"],
                    "state": task["state"],
                    "attempts": len(task["attempts"]),
                    "worker": last.get("worker_name"),
                    "started_ms": last.get("started_ms"),
                    "ended_ms": last.get("ended_ms"),
                    "wall_us": used.get("wall_us"),
                    "peak_memory_bytes": used.get("peak_memory_bytes"),
                }
            )
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    def output(self, task: int, stream: str = "both") -> bytes:
        """What a task printed (``out``, ``err``, ``both``) or gave back (``result``)."""
        response = self.hub.transport.stream(f"jobs/{self.number}/tasks/{task}/output?stream={stream}")
        return response.read()

    def results(self, follow: bool = False, order: str = "index") -> Iterator[Tuple[int, str, Optional[bytes]]]:
        """Number, state and result of tasks that have ended; with ``follow`` of all of them."""
        path = f"jobs/{self.number}/results?follow={int(follow)}&order={order}&format=frames"
        states = ("done", "failed", "cancelled")
        for task, state, flags, _, _, _, result in _http.frames(self.hub.transport.stream(path)):
            yield task, states[state], result if flags & 1 else None

    def __repr__(self) -> str:
        try:
            job = self.refresh()
        except LaboroError as error:
            return f"<job {self.number}: {error}>"
        counts = {name: count for name, count in job["counts"].items() if count}
        rows = [("job", self.number), ("name", job.get("name") or ""), ("state", job["state"]), *counts.items()]
        width = max(len(str(name)) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


class Hub:
    """A hub, found as the command line finds it."""

    def __init__(self, access: Union[str, Path, None] = None, *, dir: Union[str, Path, None] = None) -> None:
        self.transport = _http.Transport(_access.read(_access.find(access, dir)))

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Any request of the HTTP API."""
        return self.transport.request(method, path, body)

    def submit(
        self, command: Command, values: Optional[Iterable[Any]] = None, *, name: Optional[str] = None, **settings: Any
    ) -> Job:
        """A job of one command, or with ``values`` of an array of it: ``{}`` stands for the value.

        ``settings`` are those of a task in the HTTP API, such as ``slots``, ``env`` and ``timeout_ms``.
        """
        task: Dict[str, Any] = {"command": command, **settings}
        if isinstance(values, range):
            task["range"] = {"first": values.start, "last": values[-1], "step": values.step}
        elif values is not None:
            task["values"] = [str(value) for value in values]
        return self.flow([task], name=name)

    def flow(self, tasks: List[Dict[str, Any]], *, name: Optional[str] = None, **job: Any) -> Job:
        """A job of tasks as the HTTP API has them, with ``after`` between them."""
        body = {"tasks": tasks, **job}
        if name is not None:
            body["name"] = name
        return Job(self, self.request("POST", "jobs", body)["job"])

    def job(self, number: int) -> Job:
        return Job(self, number)

    def jobs(self, limit: int = 100) -> List[Dict[str, Any]]:
        """The newest jobs."""
        return self.request("GET", f"jobs?order=newest&limit={limit}")["jobs"]

    def watch(self, job: Optional[int] = None) -> Iterator[Dict[str, Any]]:
        """Events as they happen."""
        response = self.transport.stream("events" + (f"?job={job}" if job is not None else ""))
        for line in _http.lines(response):
            if line.startswith(b"data:"):
                yield json.loads(line[5:])

    def __repr__(self) -> str:
        return f"<laboro_hub.Hub at {self.transport.where}>"


class AsyncHub:
    """The same for asyncio: every method of :class:`Hub` as a coroutine."""

    def __init__(self, access: Union[str, Path, None] = None, *, dir: Union[str, Path, None] = None) -> None:
        self.hub = Hub(access, dir=dir)

    async def submit(self, command: Command, values: Optional[Iterable[Any]] = None, **settings: Any) -> Job:
        return await asyncio.to_thread(self.hub.submit, command, values, **settings)

    async def flow(self, tasks: List[Dict[str, Any]], **job: Any) -> Job:
        return await asyncio.to_thread(self.hub.flow, tasks, **job)

    async def wait(self, job: Job, timeout: Optional[float] = None) -> Dict[str, Any]:
        return await asyncio.to_thread(job.wait, timeout)

    async def jobs(self, limit: int = 100) -> List[Dict[str, Any]]:
        return await asyncio.to_thread(self.hub.jobs, limit)

    async def results(self, job: Job) -> List[Tuple[int, str, Optional[bytes]]]:
        return await asyncio.to_thread(lambda: list(job.results(follow=True)))


def _bar(title: str) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(desc=title, unit="task")


def _advance(bar: Any, counts: Dict[str, int]) -> None:
    bar.total = sum(counts.values())
    ended = sum(counts.get(state, 0) for state in ("done", "failed", "cancelled"))
    bar.update(ended - bar.n)
