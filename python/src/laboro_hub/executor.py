"""An executor of :mod:`concurrent.futures` whose calls run at the workers of a hub.

A call is a task of one open job: it survives a restart of the hub, and the death of a worker or of a runner.
"""

from __future__ import annotations

import atexit
import collections
import functools
import itertools
import os
import sys
import tempfile
import threading
import time
import weakref
from base64 import b64encode
from concurrent import futures
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _access, _calls, _http
from ._futures import CallFuture, copy, dependency_failed, settle
from ._local import LocalHub
from ._open_job import OpenJob
from ._using import Using, needs
from .errors import HubError, LaboroError, TooLarge

#: Calls of a ``map`` that are under way at a time, unless it says otherwise.
BUFFER = 10_000

#: Calls and bytes that one request has at most.
_BATCH, _BATCH_BYTES = 2000, 4 << 20

class _Pending:
    __slots__ = ("future", "payload", "value", "how")

    def __init__(self, future: CallFuture, payload: bytes, value: bytes, how: Dict[str, Any]) -> None:
        self.future, self.payload, self.value, self.how = future, payload, value, how

    def goes_with(self, other: "_Pending") -> bool:
        """Calls of one function that need the same make one array."""
        same_payload = self.payload is other.payload or self.payload == other.payload
        return same_payload and (self.how is other.how or self.how == other.how)


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
        if runner is not None and python is not None:
            raise ValueError("runner= is the whole command, python= only its program: give one of them")
        command = runner or [python or f"python{sys.version_info[0]}.{sys.version_info[1]}"]
        if runner is None:
            command = command + ["-m", "laboro_hub.serve"]
        how: Dict[str, Any] = {"runner": {"command": command}}
        if max_calls is not None:
            how["runner"]["max_calls"] = max_calls
        if idle is not None:
            how["runner"]["idle_ms"] = int(idle * 1000)
        how.update({name: value for name, value in (("env", env), ("dir", cwd)) if value})
        self._how = needs(
            how,
            slots=slots,
            memory_bytes=memory_bytes,
            resources=resources,
            tags=tags,
            priority=priority,
            attempts=attempts,
            timeout=timeout,
        )
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
        #: Made with the first call.
        self._open: OpenJob
        # Before the local hub's own: it ends after what it was used for.
        self._at_exit = functools.partial(_finish, weakref.ref(self))
        atexit.register(self._at_exit)

    @classmethod
    def local(cls, workers: Optional[int] = None, *, durability: str = "os", **options: Any) -> "Executor":
        """An executor with a hub and a worker of its own on this machine, which end with it.

        ``workers`` is how many calls run at once: as many as there are processors if not given. ``durability="sync"`` waits
        for the disk.
        """
        local = LocalHub(workers or os.cpu_count() or 1, durability)
        try:
            if "runner" not in options:
                options.setdefault("python", sys.executable)
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
        return self._submit(self._how, fn, args, kwargs)

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
        return self._map(self._how, fn, iterables, timeout, chunksize, buffersize)

    def using(self, **other: Any) -> Using:
        """This executor for calls with other needs: ``slots memory_bytes resources tags priority attempts timeout``.

        ``executor.using(slots=4).submit(fit, data)`` is a call of the same job as all others.
        """
        return Using(self, needs(self._how, **other))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        atexit.unregister(self._at_exit)
        with self._lock:
            self._is_shut = True
            if cancel_futures:
                for future in [pending.future for pending in self._queue] + list(self._sent.values()):
                    future.cancel()
            self._work.notify_all()
            threads = list(self._threads)
        if wait:
            for thread in threads:
                if thread is not threading.current_thread():
                    thread.join()
        if self._local is not None and (wait or not threads):
            self._local.stop()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        # Ctrl-C is a wish for an end, not for all that is still to come.
        self.shutdown(wait=True, cancel_futures=kind is not None and issubclass(kind, KeyboardInterrupt))

    # How it goes on.

    def _submit(self, how: Dict[str, Any], fn: Callable[..., Any], args: tuple, kwargs: dict) -> CallFuture:
        waits = [arg for arg in itertools.chain(args, kwargs.values()) if isinstance(arg, Future)]
        if waits:
            return self._submit_after(how, waits, fn, args, kwargs)
        payload = self._payload(fn)
        return self._enqueue(payload, self._fitting(payload, _calls.dump_arguments(args, kwargs)), how)

    def _map(
        self,
        how: Dict[str, Any],
        fn: Callable[..., Any],
        iterables: Tuple[Iterable[Any], ...],
        timeout: Optional[float],
        chunksize: int,
        buffersize: Optional[int],
    ) -> Iterator[Any]:
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
            under_way.append(self._enqueue(payload, self._fitting(payload, value), how))
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

    def _enqueue(self, payload: bytes, value: bytes, how: Dict[str, Any]) -> CallFuture:
        future = CallFuture(self)
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._failure is not None:
                raise self._failure
            if not self._threads:
                self._start()
            self._queue.append(_Pending(future, payload, value, how))
            if len(self._queue) == 1:
                self._work.notify_all()
        return future

    def _submit_after(self, how, waits, fn, args, kwargs) -> CallFuture:
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
                named = {name: value(arg) for name, arg in kwargs.items()}
                inner = self._submit(how, fn, tuple(real), named)
            except BaseException as error:
                outer.set_exception(dependency_failed(error))
                return
            inner.add_done_callback(lambda done: copy(done, outer))

        for future in waits:
            future.add_done_callback(ready)
        return outer

    def _start(self) -> None:
        self._open = OpenJob(self._transport, name=self._name or "python", key=self._key, group=self._group)
        self.job, self._there = self._open.number, self._open.there
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
            self._open.stop()
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
                try:
                    self._send_batch(batch)
                except HubError as error:
                    # A refusal is about these calls; what is about the job or the token is about all.
                    if error.status not in (400, 409, 413, 422):
                        self._put_back(batch)
                        raise
                    for pending in batch:
                        if not pending.future.done():
                            pending.future.set_exception(error)
                except BaseException:
                    self._put_back(batch)
                    raise
            if cancels:
                self._open.cancel(cancels)
            if is_last and not self._queue and not self._cancels:
                self._open.close()
                with self._lock:
                    self._is_over = not self._sent
                    self._work.notify_all()
                if self._is_over:
                    self._open.stop()
                return

    def _put_back(self, batch: List[_Pending]) -> None:
        with self._lock:
            self._queue.extendleft(reversed(batch))

    def _take_batch(self) -> List[_Pending]:
        batch: List[_Pending] = []
        size = 0
        while self._queue and len(batch) < _BATCH and size < _BATCH_BYTES:
            pending = self._queue[0]
            if batch and not pending.goes_with(batch[0]):
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
        if there:
            self._check_same(batch[:there])
        with self._lock:
            self._number(batch[:there])
        batch = batch[there:]
        if not batch:
            return
        values = [{"base64": b64encode(pending.value).decode()} for pending in batch]
        task = {"call": {"base64": b64encode(batch[0].payload).decode()}, "values": values, **batch[0].how}
        self._open.add([task], len(batch), self._numbered)
        with self._lock:
            self._number(batch)

    def _check_same(self, batch: List[_Pending]) -> None:
        """Results of other calls must not be taken for these; a few of each batch are looked at."""
        for at in sorted({0, len(batch) // 2, len(batch) - 1}):
            number = self._numbered + 1 + at
            before = self._open.value(number)
            if before is not None and not _calls.same_value(before, batch[at].value):
                raise LaboroError(
                    f"key {self._key!r}: call {number} of job {self.job} was made with other arguments before; "
                    f"use another key, or `laboro forget {self.job}`"
                )

    def _number(self, batch: List[_Pending]) -> None:
        for pending in batch:
            self._numbered += 1
            number, future = self._numbered, pending.future
            future._number = number
            early = self._early.pop(number, None)
            if early is not None:
                settle(future, *early)
            elif future.cancelled():
                self._cancels.append(number)
            else:
                self._sent[number] = future

    def _cancelled(self, future: CallFuture) -> None:
        with self._lock:
            if future._number is not None and self._sent.pop(future._number, None) is not None:
                self._cancels.append(future._number)
                self._work.notify_all()

    def _receive(self) -> None:
        """Settles futures as their calls end."""
        for end in self._open.ends(self._first_awaited):
            if end is not None:
                if self._heard(*end):
                    return
                continue
            # The job has ended, perhaps because somebody closed it.
            with self._lock:
                if self._is_over or (self._is_shut and not self._sent):
                    self._is_over = True
                    self._work.notify_all()
                    return

    def _first_awaited(self) -> int:
        with self._lock:
            return min(self._sent, default=self._numbered + 1) if self._numbered else 1

    def _heard(self, number: int, *end: Any) -> bool:
        """True: that was the last."""
        with self._lock:
            future = self._sent.pop(number, None)
            if future is None and number > self._numbered:
                self._early[number] = end
            if self._is_shut and not self._sent and not self._queue and not self._early:
                self._is_over = True
        if future is not None:
            settle(future, *end)
        return self._is_over

    def __repr__(self) -> str:
        with self._lock:
            waiting, under_way = len(self._queue), len(self._sent)
        return f"<laboro_hub.Executor job {self.job}: {self._numbered} calls sent, {under_way} under way, {waiting} waiting>"


def _finish(reference: "weakref.ref[Executor]") -> None:
    """At the end of the program, as other executors do: what was submitted is done, unless Ctrl-C ended it."""
    executor = reference()
    if executor is not None:
        executor.shutdown(cancel_futures=getattr(sys, "last_type", None) is KeyboardInterrupt)


def _python_path() -> str:
    package = str(Path(__file__).resolve().parent.parent)
    paths = [package] + [path for path in sys.path if path and os.path.exists(path)]
    return os.pathsep.join(dict.fromkeys(paths))
