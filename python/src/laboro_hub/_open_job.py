"""A job that tasks are added to while it runs, and the ends of its tasks as they come.

It belongs to one client: nobody else adds to it. So the number of its tasks tells what the hub has taken, also when an
answer was lost with its connection.
"""

from __future__ import annotations

import threading
import time
import uuid
from base64 import b64decode
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from . import _http
from .errors import HubError, HubUnreachable, LaboroError

#: Task, state, flags, outcome, code, message, result: see spec/results.md.
End = Tuple[int, int, int, int, int, str, bytes]

DONE, FAILED, CANCELLED = 0, 1, 2

OUTCOMES = {1: "exit", 2: "signal", 3: "timed_out", 4: "error", 5: "lost", 6: "memory"}

#: How long a hub may be away.
_PATIENCE = 600.0


class OpenJob:
    def __init__(
        self, transport: _http.Transport, *, name: str, key: Optional[str] = None, group: Optional[str] = None
    ) -> None:
        self.transport = transport
        submit: Dict[str, Any] = {"open": True, "key": key or f"python-{uuid.uuid4()}", "name": name}
        if group:
            submit["group"] = group
        made = transport.retrying("POST", "jobs", submit)
        self.number: int = made["job"]
        #: Tasks from before, when the key was used before.
        self.there: int = made.get("count", 0) if made.get("again") else 0
        self._lock = threading.Lock()
        self._response: Any = None
        self._is_stopped = False

    def add(self, tasks: List[Dict[str, Any]], count: int, before: int) -> None:
        """Adds ``count`` tasks behind the first ``before``. Waits while the hub is away or has no room."""
        pause = 0.05
        while True:
            try:
                answer = self.transport.request("POST", f"jobs/{self.number}/tasks", {"tasks": tasks})
                first = answer["first"]
            except (HubUnreachable, HubError) as error:
                if isinstance(error, HubError) and error.status not in (502, 503) and error.reason != "quota":
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
                if self.total() < before + count:
                    continue
                first = before + 1
            if first != before + 1:
                raise LaboroError(f"job {self.number} has tasks of another program: use another key")
            return

    def total(self) -> int:
        counts = self.transport.retrying("GET", f"jobs/{self.number}")["counts"]
        return sum(count for name, count in counts.items() if name != "total")

    def value(self, number: int) -> Optional[bytes]:
        """What a call of this number was made with."""
        work = self.transport.retrying("GET", f"jobs/{self.number}/tasks/{number}").get("work") or {}
        value = work.get("value")
        return b64decode(value["base64"]) if isinstance(value, dict) else None if value is None else value.encode()

    def cancel(self, numbers: Iterable[int]) -> None:
        """What has ended already stays as it is."""
        waiting = list(numbers)
        for start in range(0, len(waiting), 1000):
            some = ",".join(map(str, waiting[start : start + 1000]))
            try:
                self.transport.retrying("POST", f"jobs/{self.number}/cancel", {"tasks": some})
            except HubError as error:
                if error.status not in (404, 409):
                    raise

    def close(self) -> None:
        """No more tasks are added."""
        self.transport.retrying("POST", f"jobs/{self.number}/close", {})

    def ends(self, first: Callable[[], int]) -> Iterator[Optional[End]]:
        """Tasks from number ``first()`` on as they end, whatever becomes of the connection or the hub meanwhile; one may
        come twice. ``None`` says that the job has ended."""
        pause, lost_since = 0.05, None
        while not self._is_stopped:
            response: Any = None
            try:
                path = f"jobs/{self.number}/results?from={first()}&follow=1&order=end&format=frames"
                response = self.transport.stream(path)
                with self._lock:
                    self._response = response
                    if self._is_stopped:
                        return
                for frame in _http.frames(response):
                    pause, lost_since = 0.05, None
                    yield frame
                yield None
            except (HubUnreachable, *_http.BROKEN) as error:
                lost_since = lost_since or time.monotonic()
                if not self._is_stopped and time.monotonic() - lost_since > _PATIENCE:
                    raise HubUnreachable(f"the hub is away for ten minutes: {error}") from error
            except HubError as error:
                if error.status not in (502, 503):
                    raise
            except (AttributeError, ValueError):
                # What a response says that was closed by `stop`.
                if not self._is_stopped:
                    raise
            finally:
                with self._lock:
                    self._response = None
                if response is not None:
                    response.close()
                    response.laboro_connection.close()
            if not self._is_stopped:
                time.sleep(pause)
                pause = min(2 * pause, 2.0)

    def stop(self) -> None:
        """Ends ``ends``, also where another thread waits in it."""
        with self._lock:
            self._is_stopped = True
            if self._response is not None:
                _http.break_off(self._response)
