"""An executor of :mod:`concurrent.futures` whose calls run at the workers of a hub.

A call is a task of one open job: it survives a restart of the hub, and the death of a worker or of a runner.
"""

from __future__ import annotations

import collections
import itertools
import os
import sys
import tempfile
import threading
import time
import uuid
import weakref
from base64 import b64encode
from concurrent import futures
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _access, _calls, _http
from ._local import LocalHub
from .errors import HubError, HubUnreachable, LaboroError, ResultLost, TaskFailed, TooLarge

#: Calls of a ``map`` that are under way at a time, unless it says otherwise.
BUFFER = 10_000

#: Calls and bytes that one request has at most.
_BATCH, _BATCH_BYTES = 2000, 4 << 20

_OUTCOMES = {1: "exit", 2: "signal", 3: "timed_out", 4: "error", 5: "lost"}


class CallFuture(Future):
    """The future of a call. ``task`` is what the command line knows it by, such as ``12/345``."""

    def __init__(self, executor: "Executor") -> None:
        super().__init__()
        self._executor = weakref.ref(executor)
        self._number: Optional[int] = None

    @property
    def task(self) -> Optional[str]:
        executor = self._executor()
        if executor is None or self._number is None:
            return None
        return f"{executor.job}/{self._number}"

    def cancel(self) -> bool:
        """Cancels the call, also when it is under way: its runner is ended then."""
        if not super().cancel():
            return False
        executor = self._executor()
        if executor is not None:
            executor._cancelled(self)
        return True


class _Pending:
    __slots__ = ("future", "payload", "value")

    def __init__(self, future: CallFuture, payload: bytes, value: bytes) -> None:
        self.future, self.payload, self.value = future, payload, value


class Executor(futures.Executor):
    """Runs calls at the workers of a hub.

    :param access: the hub's access file; found as the command line finds it if not given.
    :param dir: the hub's directory, in place of ``access``.
    :param group: the group whose workers run the calls.
    :param name: what the job is called.
    :param key: makes the job resumable: an executor with the same key goes on with it, and calls that are done there
        come back at once. The same calls have to be made in the same order.
    :param python: the Python that runs the calls at workers; its minor version has to be this one's.
    :param runner: the whole command of the runner, in place of ``python``.
    :param env: variables of the runner. ``cwd``: its directory.
    :param slots, memory_bytes, resources, tags, priority: what each call needs, and which goes first.
    :param attempts: how often a call is tried that fails. ``timeout``: seconds that it may take.
    :param spill: a directory that workers can read: arguments of more than 1 MiB go there.
    """

    def __init__(
        self,
        access: Union[str, Path, None] = None,
        *,
        dir: Union[str, Path, None] = None,
        group: Optional[str] = None,
        name: Optional[str] = None,
        key: Optional[str] = None,
        python: Optional[str] = None,
        runner: Optional[List[str]] = None,
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[str] = None,
        slots: int = 1,
        memory_bytes: Optional[int] = None,
        resources: Optional[Dict[str, int]] = None,
        tags: Iterable[str] = (),
        priority: int = 0,
        attempts: int = 1,
        timeout: Optional[float] = None,
        max_calls: Optional[int] = None,
        idle: Optional[float] = None,
        spill: Union[str, Path, None] = None,
        _local: Optional[LocalHub] = None,
    ) -> None:
        self._local = _local
        self._transport = _http.Transport(_access.read(_access.find(access, dir)))
        command = runner or [python or f"python{sys.version_info[0]}.{sys.version_info[1]}"]
        if runner is None:
            command = command + ["-m", "laboro_hub.serve"]
        how: Dict[str, Any] = {"runner": {"command": command}, "slots": slots}
        if max_calls is not None:
            how["runner"]["max_calls"] = max_calls
        if idle is not None:
            how["runner"]["idle_ms"] = int(idle * 1000)
        optional = {
            "env": env,
            "dir": cwd,
            "memory_bytes": memory_bytes,
            "resources": resources,
            "tags": list(tags),
            "priority": priority,
            "attempts": attempts if attempts != 1 else None,
            "timeout_ms": int(timeout * 1000) if timeout is not None else None,
        }
        how.update({name: value for name, value in optional.items() if value})
        self._how = how
        self._spill = Path(spill) if spill is not None else None
        self._group, self._name, self._key = group, name, key
        self.job: Optional[int] = None
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)
        self._queue: Deque[_Pending] = collections.deque()
        self._sent: Dict[int, CallFuture] = {}
        self._early: Dict[int, tuple] = {}
        self._numbered = 0
        self._there = 0
        self._cancels: List[int] = []
        self._is_shut = False
        self._is_over = False
        self._failure: Optional[BaseException] = None
        self._threads: List[threading.Thread] = []
        self._payloads: "weakref.WeakKeyDictionary[Any, bytes]" = weakref.WeakKeyDictionary()
        self._response: Any = None

    @classmethod
    def local(cls, workers: Optional[int] = None, **options: Any) -> "Executor":
        """An executor with a hub and a worker of its own on this machine, which end with it.

        ``workers`` is how many calls run at once: as many as there are processors if not given.
        """
        local = LocalHub(workers or os.cpu_count() or 1)
        try:
            options.setdefault("runner", [sys.executable, "-m", "laboro_hub.serve"])
            options.setdefault("env", {"PYTHONPATH": _python_path()})
            options.setdefault("cwd", os.getcwd())
            options.setdefault("spill", local.dir / "spill")
            return cls(dir=local.dir, _local=local, **options)
        except BaseException:
            local.stop()
            raise

    # What concurrent.futures has.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallFuture:
        """A future of ``fn(*args, **kwargs)``. Arguments that are futures are waited for, and stand for their results."""
        waits = [arg for arg in itertools.chain(args, kwargs.values()) if isinstance(arg, Future)]
        if waits:
            return self._submit_after(waits, fn, args, kwargs)
        payload = self._payload(fn)
        return self._enqueue(payload, self._fitting(payload, _calls.dump_arguments(args, kwargs)))

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: Optional[float] = None,
        chunksize: int = 1,
        buffersize: Optional[int] = None,
    ) -> Iterator[Any]:
        """Results of ``fn`` in the order of the arguments, which are taken as room for them becomes free.

        At most ``buffersize`` calls are under way (10 000 if not given), so that a million of them take bounded memory.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        deadline = None if timeout is None else time.monotonic() + timeout
        payload = self._payload(fn)
        arguments = zip(*iterables)
        ahead = max(1, (buffersize or BUFFER) // chunksize)
        under_way: Deque[CallFuture] = collections.deque()

        def feed() -> bool:
            if chunksize == 1:
                args = next(arguments, None)
                if args is None:
                    return False
                value = _calls.dump_arguments(args, {})
            else:
                chunk = list(itertools.islice(arguments, chunksize))
                if not chunk:
                    return False
                value = _calls.dump_chunk(chunk)
            under_way.append(self._enqueue(payload, self._fitting(payload, value)))
            return True

        # The first ones now, as everybody expects of map: the generator begins when it is asked.
        while len(under_way) < ahead and feed():
            pass

        def results() -> Iterator[Any]:
            try:
                while under_way:
                    left = None if deadline is None else deadline - time.monotonic()
                    result = under_way[0].result(left)
                    under_way.popleft()
                    while len(under_way) < ahead and feed():
                        pass
                    if chunksize == 1:
                        yield result
                    else:
                        yield from result
            finally:
                for future in under_way:
                    future.cancel()

        return results()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._is_shut = True
            if cancel_futures:
                waiting = list(self._queue) and [pending.future for pending in self._queue]
                for future in list(waiting) + list(self._sent.values()):
                    future.cancel()
            self._work.notify_all()
            threads = list(self._threads)
        if wait:
            for thread in threads:
                if thread is not threading.current_thread():
                    thread.join()
        if self._local is not None and (wait or not threads):
            self._local.stop()

    # How it goes on.

    def _payload(self, fn: Callable[..., Any]) -> bytes:
        try:
            known = self._payloads.get(fn)
        except TypeError:
            return _calls.dump_function(fn)
        if known is None:
            known = _calls.dump_function(fn)
            try:
                self._payloads[fn] = known
            except TypeError:
                pass
        return known

    def _fitting(self, payload: bytes, value: bytes) -> bytes:
        if len(payload) + len(value) <= _calls.BYTES_MAX:
            return value
        if self._spill is None or len(payload) > _calls.BYTES_MAX // 2:
            raise TooLarge(
                f"the call has {len(payload) + len(value)} bytes (function {len(payload)}, arguments {len(value)}); "
                f"at most {_calls.BYTES_MAX} are taken: pass the path of a file that workers can read, or give the "
                f"executor a directory that they share, Executor(spill=DIR)"
            )
        self._spill.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._spill, suffix=".call", delete=False) as file:
            file.write(value)
        return _calls.dump_path(file.name)

    def _enqueue(self, payload: bytes, value: bytes) -> CallFuture:
        future = CallFuture(self)
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._failure is not None:
                raise self._failure
            if not self._threads:
                self._start()
            self._queue.append(_Pending(future, payload, value))
            if len(self._queue) == 1:
                self._work.notify_all()
        return future

    def _submit_after(self, waits, fn, args, kwargs) -> CallFuture:
        outer = CallFuture(self)
        left = [len(waits)]
        lock = threading.Lock()

        def ready(_: Future) -> None:
            with lock:
                left[0] -= 1
                if left[0] or outer.cancelled():
                    return
            try:
                value = lambda arg: arg.result() if isinstance(arg, Future) else arg  # noqa: E731
                real = [value(arg) for arg in args]
                inner = self.submit(fn, *real, **{name: value(arg) for name, arg in kwargs.items()})
            except BaseException as error:
                outer.set_exception(_dependency(error))
                return
            inner.add_done_callback(lambda done: _copy(done, outer))

        for future in waits:
            future.add_done_callback(ready)
        return outer

    def _start(self) -> None:
        submit: Dict[str, Any] = {"open": True, "key": self._key or f"python-{uuid.uuid4()}"}
        if self._group:
            submit["group"] = self._group
        submit["name"] = self._name or "python"
        made = self._transport.retrying("POST", "jobs", submit)
        self.job = made["job"]
        self._there = made.get("count", 0) if made.get("again") else 0
        for target in (self._send, self._receive):
            thread = threading.Thread(target=self._guarded, args=(target,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:  # Nobody's future may wait for ever.
            with self._lock:
                self._failure = error if isinstance(error, LaboroError) else LaboroError(repr(error))
                waiting = [pending.future for pending in self._queue] + list(self._sent.values())
                self._queue.clear()
                self._sent.clear()
                self._is_over = True
                self._work.notify_all()
            for future in waiting:
                if not future.done():
                    future.set_exception(self._failure)
        finally:
            self._transport.hang_up()

    def _send(self) -> None:
        """Takes what was submitted to the hub, in order, many calls at a time."""
        while True:
            with self._lock:
                while not (self._queue or self._cancels or self._is_shut or self._is_over):
                    self._work.wait()
                if self._is_over:
                    return
                batch, is_last = self._take_batch(), self._is_shut and not self._queue
                cancels, self._cancels = self._cancels, []
            if batch:
                self._send_batch(batch)
            if cancels:
                self._cancel_at_hub(cancels)
            if is_last and not self._queue and not self._cancels:
                if self.job is not None:
                    self._transport.retrying("POST", f"jobs/{self.job}/close", {})
                with self._lock:
                    self._is_over = not self._sent
                    self._work.notify_all()
                    response = self._response if self._is_over else None
                _break(response)
                return

    def _take_batch(self) -> List[_Pending]:
        batch: List[_Pending] = []
        size = 0
        while self._queue and len(batch) < _BATCH and size < _BATCH_BYTES:
            pending = self._queue[0]
            # Calls of one function make one array.
            if batch and pending.payload is not batch[0].payload and pending.payload != batch[0].payload:
                break
            self._queue.popleft()
            if pending.future.cancelled():
                if self._numbered >= self._there:
                    continue
            size += len(pending.value)
            batch.append(pending)
        return batch

    def _send_batch(self, batch: List[_Pending]) -> None:
        with self._lock:
            # With a key they may be there from before.
            there = max(0, min(len(batch), self._there - self._numbered))
            self._number(batch[:there])
        batch = batch[there:]
        if not batch:
            return
        values = [{"base64": b64encode(pending.value).decode()} for pending in batch]
        task = {"call": {"base64": b64encode(batch[0].payload).decode()}, "values": values, **self._how}
        pause = 0.05
        while True:
            try:
                answer = self._transport.request("POST", f"jobs/{self.job}/tasks", {"tasks": [task]})
                first = answer["first"]
            except (HubUnreachable, HubError) as error:
                if isinstance(error, HubError) and error.status not in (502, 503) and error.reason != "quota":
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
                # Nobody else adds to this job, so its size tells whether the hub has them.
                total = self._total()
                if total < self._numbered + len(batch):
                    continue
                first = self._numbered + 1
            with self._lock:
                if first != self._numbered + 1:
                    raise LaboroError(f"job {self.job} has tasks of somebody else: use another key")
                self._number(batch)
            return

    def _total(self) -> int:
        counts = self._transport.retrying("GET", f"jobs/{self.job}")["counts"]
        return sum(count for name, count in counts.items() if name != "total")

    def _number(self, batch: List[_Pending]) -> None:
        for pending in batch:
            self._numbered += 1
            number, future = self._numbered, pending.future
            future._number = number
            early = self._early.pop(number, None)
            if early is not None:
                _settle(future, *early)
            elif future.cancelled():
                self._cancels.append(number)
            else:
                self._sent[number] = future

    def _cancelled(self, future: CallFuture) -> None:
        with self._lock:
            if future._number is not None and self._sent.pop(future._number, None) is not None:
                self._cancels.append(future._number)
                self._work.notify_all()

    def _cancel_at_hub(self, numbers: List[int]) -> None:
        for start in range(0, len(numbers), 1000):
            some = ",".join(map(str, numbers[start : start + 1000]))
            try:
                self._transport.retrying("POST", f"jobs/{self.job}/cancel", {"tasks": some})
            except HubError as error:
                if error.status != 409 and error.status != 404:
                    raise

    def _receive(self) -> None:
        """Settles futures as their calls end, whatever becomes of the connection or the hub meanwhile."""
        pause, lost_since = 0.05, None
        while True:
            with self._lock:
                if self._is_over:
                    return
                first = min(self._sent, default=self._numbered + 1) if self._numbered else 1
            try:
                path = f"jobs/{self.job}/results?from={first}&follow=1&order=end&format=frames"
                response = self._transport.stream(path)
                with self._lock:
                    self._response = response
                for frame in _http.frames(response):
                    pause, lost_since = 0.05, None
                    if self._heard(*frame):
                        return
                # The job has ended.
                with self._lock:
                    if not self._sent and (self._is_shut or self._is_over):
                        self._is_over = True
                        self._work.notify_all()
                        return
            except (HubUnreachable, *_http.BROKEN) as error:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > 600:
                    raise HubUnreachable(f"the hub is away for ten minutes: {error}") from error
            except HubError as error:
                if error.status not in (502, 503):
                    raise
            except (AttributeError, ValueError):
                # Closed by whoever shut it down.
                with self._lock:
                    if self._is_over:
                        return
            finally:
                _close(self._response)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _heard(self, number: int, *end: Any) -> bool:
        """True: that was the last."""
        with self._lock:
            future = self._sent.pop(number, None)
            if future is None and number > self._numbered:
                self._early[number] = end
            if self._is_shut and not self._sent and not self._queue and not self._early:
                self._is_over = True
        if future is not None:
            _settle(future, *end)
        return self._is_over

    def __repr__(self) -> str:
        with self._lock:
            waiting, under_way = len(self._queue), len(self._sent)
        return f"<laboro_hub.Executor job {self.job}: {self._numbered} calls sent, {under_way} under way, {waiting} waiting>"


def _settle(
    future: CallFuture, state: int, flags: int, outcome: int, code: int, message: str, data: bytes
) -> None:
    if future.done():
        return
    try:
        if state == 0:
            if flags & 2:
                raise ResultLost(f"task {future.task} is done, and the hub could not keep its result")
            future.set_result(_calls.load_result(data) if flags & 1 else None)
        elif state == 2:
            Future.cancel(future)
            future.set_running_or_notify_cancel()
        elif flags & 1:
            future.set_exception(_calls.load_error(data))
        else:
            how = _OUTCOMES.get(outcome, "failed")
            words = message.strip() or f"the task ended: {how} {code}"
            raise TaskFailed(words, how, code, future.task)
    except futures.InvalidStateError:
        pass
    except BaseException as error:
        if not future.done():
            future.set_exception(error)


def _copy(done: Future, outer: Future) -> None:
    if outer.done():
        return
    if done.cancelled():
        Future.cancel(outer)
        outer.set_running_or_notify_cancel()
    elif done.exception() is not None:
        outer.set_exception(done.exception())
    else:
        outer.set_result(done.result())


def _dependency(error: BaseException) -> BaseException:
    from .errors import DependencyFailed

    failed = DependencyFailed(f"a task that this one depends on failed: {error!r}")
    failed.__cause__ = error
    return failed


def _break(response: Any) -> None:
    """Wakes whoever reads it."""
    connection = getattr(response, "laboro_connection", None)
    sock = getattr(connection, "sock", None)
    if sock is None and response is not None:
        sock = getattr(getattr(getattr(response, "fp", None), "raw", None), "_sock", None)
    if sock is not None:
        try:
            import socket

            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _close(response: Any) -> None:
    if response is not None:
        response.close()
        response.laboro_connection.close()


def _python_path() -> str:
    package = str(Path(__file__).resolve().parent.parent)
    paths = [package] + [path for path in sys.path if path and os.path.exists(path)]
    return os.pathsep.join(dict.fromkeys(paths))
