"""The future of a call, and how it comes to its end."""

from __future__ import annotations

import asyncio
import weakref
from concurrent import futures
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generator, Optional

from . import _calls
from ._open_job import CANCELLED, DONE, OUTCOMES
from .errors import DependencyFailed, ResultLost, TaskFailed

if TYPE_CHECKING:
    from .executor import Executor


class CallFuture(Future):
    """The future of a call, which can also be awaited. ``task`` is what the command line knows it by, such as ``12/345``."""

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

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()


def settle(
    future: CallFuture, state: int, flags: int, outcome: int, code: int, message: str, data: bytes
) -> None:
    if future.done():
        return
    try:
        if state == DONE:
            if flags & 2:
                raise ResultLost(f"task {future.task} is done, and the hub could not keep its result")
            future.set_result(_calls.load_result(data) if flags & 1 else None)
        elif state == CANCELLED:
            Future.cancel(future)
            future.set_running_or_notify_cancel()
        elif flags & 1:
            future.set_exception(_calls.load_error(data))
        else:
            how = OUTCOMES.get(outcome, "failed")
            words = message.strip() or f"the task ended: {how} {code}"
            raise TaskFailed(words, how, code, future.task)
    except futures.InvalidStateError:
        pass
    except BaseException as error:
        if not future.done():
            future.set_exception(error)


def copy(done: Future, outer: Future) -> None:
    if outer.done():
        return
    if done.cancelled():
        Future.cancel(outer)
        outer.set_running_or_notify_cancel()
    elif done.exception() is not None:
        outer.set_exception(done.exception())
    else:
        outer.set_result(done.result())


def dependency_failed(error: BaseException) -> BaseException:
    failed = DependencyFailed(f"a task that this one depends on failed: {error!r}")
    failed.__cause__ = error
    return failed
