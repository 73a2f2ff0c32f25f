"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import Optional


class LaboroError(Exception):
    """Whatever this package raises by itself."""


class HubError(LaboroError):
    """The hub refused a request. ``reason`` is a word that does not change, ``status`` that of HTTP."""

    def __init__(self, message: str, reason: str = "", status: int = 0, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.reason = reason
        self.status = status
        self.hint = hint


class HubUnreachable(LaboroError):
    """No hub answers."""


class TaskFailed(LaboroError):
    """A task failed without a Python exception of its own: its process died, or it took too long."""

    def __init__(
        self, message: str, outcome: str = "", code: int = 0, task: Optional[str] = None
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.code = code
        self.task = task


class ResultLost(LaboroError):
    """A task is done and what it gave back could not be kept: the hub's disk was full."""


class TooLarge(LaboroError, ValueError):
    """Arguments or a function with more bytes than a call takes."""


class PythonMismatch(LaboroError, RuntimeError):
    """Client and worker run different minor versions of Python."""


class DependencyFailed(LaboroError):
    """A task did not run because one that it depends on failed."""


class RemoteTraceback(Exception):
    """The traceback of an exception that was raised at a worker, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'
