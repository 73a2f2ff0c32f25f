"""A hub as a client sees it: jobs of commands, what becomes of them, what they gave back."""

from __future__ import annotations

import asyncio
import html
import json
import time
from pathlib import Path
from typing import Any, AsyncIterator, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _access, _http
from .errors import HubUnreachable, LaboroError

Command = Union[str, List[str]]


class Job:
    """A job at a hub. Its ``repr`` is a small table of how far it is, in a notebook too."""

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
                ended = self._ended_within(left, bar)
                if ended is not None:
                    return ended
        except KeyboardInterrupt:
            self.cancel()
            raise
        finally:
            if bar is not None:
                bar.close()

    def _ended_within(self, seconds: float, bar: Any = None) -> Optional[Dict[str, Any]]:
        if seconds <= 0:
            raise TimeoutError(f"job {self.number} has not ended")
        path = f"wait?jobs={self.number}&timeout_ms={int(seconds * 1000)}"
        answer = self.hub.transport.retrying("GET", path)
        job = answer["jobs"][0]
        if bar is not None:
            _advance(bar, job["counts"])
        return job if answer["finished"] else None

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
        """Number, state and result of tasks that have ended, by number or with ``order="end"`` as they ended; with
        ``follow`` of all of them, also over a restart of the hub."""
        path = f"jobs/{self.number}/results?follow={int(follow)}&order={order}&format=frames"
        states = ("done", "failed", "cancelled")
        first, seen = 1, set()
        pause, lost_since = 0.05, None
        while True:
            try:
                for task, state, flags, _, _, _, result in _http.frames(self.hub.transport.stream(f"{path}&from={first}")):
                    pause, lost_since = 0.05, None
                    if order == "index":
                        first = task + 1
                    elif follow:
                        # By their ends they come from the beginning again.
                        if task in seen:
                            continue
                        seen.add(task)
                    yield task, states[state], result if flags & 1 else None
                return
            except (HubUnreachable, *_http.BROKEN):
                lost_since = lost_since or time.monotonic()
                if not follow or time.monotonic() - lost_since > 300:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _rows(self) -> List[Tuple[str, Any]]:
        job = self.refresh()
        counts = {name: count for name, count in job["counts"].items() if count}
        return [("job", self.number), ("name", job.get("name") or ""), ("state", job["state"]), *counts.items()]

    def __repr__(self) -> str:
        try:
            rows = self._rows()
        except LaboroError as error:
            return f"<job {self.number}: {error}>"
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        try:
            rows = self._rows()
        except LaboroError as error:
            return f"<p>job {self.number}: {html.escape(str(error))}</p>"
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
        return f"<table>{cells}</table>"


class Events:
    """What happens at a hub, as it happens. After a break it goes on where it was; an event of the kind ``gap`` says that
    something was missed. ``close()`` ends it, also from another thread."""

    def __init__(self, transport: _http.Transport, job: Optional[int]) -> None:
        self._transport = transport
        self._path = "events" + (f"?job={job}" if job is not None else "")
        self._last: Optional[str] = None
        self._is_closed = False
        # Now, so that nothing is missed that happens before the first event is taken.
        self._response: Any = self._open()
        self._events = self._read()

    def _open(self) -> Any:
        headers = {"Last-Event-ID": self._last} if self._last is not None else {}
        return self._transport.stream(self._path, headers=headers)

    def _read(self) -> Iterator[Dict[str, Any]]:
        pause, give_up = 0.05, None
        while not self._is_closed:
            try:
                if self._response is None:
                    self._response = self._open()
                give_up = None
                for line in self._response:
                    if line.startswith(b"id:"):
                        self._last = line[3:].strip().decode()
                    elif line.startswith(b"data:"):
                        pause = 0.05
                        yield json.loads(line[5:])
            except (HubUnreachable, *_http.BROKEN, AttributeError, ValueError):
                give_up = give_up or time.monotonic() + 300
                if not self._is_closed and time.monotonic() > give_up:
                    raise
            if self._response is not None:
                self._response.close()
                self._response.laboro_connection.close()
                self._response = None
            if not self._is_closed:
                time.sleep(pause)
                pause = min(2 * pause, 2.0)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return self

    def __next__(self) -> Dict[str, Any]:
        return next(self._events)

    def close(self) -> None:
        self._is_closed = True
        response = self._response
        if response is not None:
            _http.break_off(response)


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

    def watch(self, job: Optional[int] = None) -> Events:
        """Events as they happen, of one job or of all."""
        return Events(self.transport, job)

    def __repr__(self) -> str:
        return f"<laboro_hub.Hub at {self.transport.where}>"


class AsyncHub:
    """The same for asyncio. A call of :class:`Executor` can be awaited by itself: ``await executor.submit(f, x)``."""

    def __init__(self, access: Union[str, Path, None] = None, *, dir: Union[str, Path, None] = None) -> None:
        self.hub = Hub(access, dir=dir)

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        return await asyncio.to_thread(self.hub.request, method, path, body)

    async def submit(self, command: Command, values: Optional[Iterable[Any]] = None, **settings: Any) -> Job:
        return await asyncio.to_thread(self.hub.submit, command, values, **settings)

    async def flow(self, tasks: List[Dict[str, Any]], **job: Any) -> Job:
        return await asyncio.to_thread(self.hub.flow, tasks, **job)

    async def wait(self, job: Job, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Waits until it has ended. A wait that is cancelled cancels nothing but itself."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
            ended = await asyncio.to_thread(job._ended_within, left)
            if ended is not None:
                return ended

    async def cancel(self, job: Job, tasks: Optional[str] = None) -> None:
        await asyncio.to_thread(job.cancel, tasks)

    async def jobs(self, limit: int = 100) -> List[Dict[str, Any]]:
        return await asyncio.to_thread(self.hub.jobs, limit)

    async def results(self, job: Job) -> List[Tuple[int, str, Optional[bytes]]]:
        return await asyncio.to_thread(lambda: list(job.results(follow=True)))

    async def watch(self, job: Optional[int] = None) -> AsyncIterator[Dict[str, Any]]:
        events = await asyncio.to_thread(self.hub.watch, job)
        try:
            while True:
                event = await asyncio.to_thread(next, events, None)
                if event is None:
                    return
                yield event
        finally:
            events.close()


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
