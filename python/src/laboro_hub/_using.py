"""What calls need of a worker, and an executor for calls that need something else."""

from __future__ import annotations

from concurrent import futures
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, Optional

from ._futures import CallFuture

if TYPE_CHECKING:
    from .executor import Executor


class Using(futures.Executor):
    """An executor whose calls have needs of their own; see :meth:`Executor.using`."""

    def __init__(self, executor: Executor, how: Dict[str, Any]) -> None:
        self.executor = executor
        self._how = how

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallFuture:
        return self.executor._submit(self._how, fn, args, kwargs)

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: Optional[float] = None,
        chunksize: int = 1,
        buffersize: Optional[int] = None,
    ) -> Iterator[Any]:
        return self.executor._map(self._how, fn, iterables, timeout, chunksize, buffersize)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing: the executor that it was made of goes on."""


def needs(
    how: Dict[str, Any],
    *,
    slots: Optional[int] = None,
    memory_bytes: Optional[int] = None,
    resources: Optional[Dict[str, Any]] = None,
    tags: Optional[Iterable[str]] = None,
    priority: Optional[int] = None,
    attempts: Optional[int] = None,
    timeout: Optional[float] = None,
) -> Dict[str, Any]:
    """What a task of the HTTP API says; what is not given stays as it is."""
    given = {
        "slots": slots,
        "memory_bytes": memory_bytes,
        "resources": resources,
        "tags": None if tags is None else list(tags),
        "priority": priority,
        "attempts": attempts,
        "timeout_ms": None if timeout is None else int(timeout * 1000),
    }
    return {**how, **{name: value for name, value in given.items() if value is not None}}
