"""Graphs of functions: a task that is called with futures waits for them, and is given their results."""

from __future__ import annotations

import functools
from concurrent.futures import Future
from typing import Any, Callable, Optional

from .executor import Executor


class Task:
    """A function that runs at a hub when it is called with :meth:`submit`; called as it is, it runs here."""

    def __init__(self, function: Callable[..., Any], executor: Optional[Executor]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.executor = executor

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def submit(self, *args: Any, executor: Optional[Executor] = None, **kwargs: Any) -> Future:
        chosen = executor or self.executor
        if chosen is None:
            raise TypeError(f"{self.function.__name__}.submit() needs an executor: @task(executor) or executor=")
        return chosen.submit(self.function, *args, **kwargs)


def task(executor: Any = None) -> Any:
    """``@task`` or ``@task(executor)``: a function whose ``submit`` takes values and futures alike."""
    if callable(executor) and not isinstance(executor, Executor):
        return Task(executor, None)
    return lambda function: Task(function, executor)
