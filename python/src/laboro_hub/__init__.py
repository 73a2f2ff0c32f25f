"""Very many jobs on many machines, from Python.

:class:`Executor` runs functions as :mod:`concurrent.futures` does, :class:`Hub` submits commands and looks at jobs,
:func:`task` makes graphs of functions, :func:`register_joblib` lets joblib and scikit-learn run on a hub.
"""

from .errors import (
    DependencyFailed,
    HubError,
    HubUnreachable,
    LaboroError,
    PythonMismatch,
    RemoteTraceback,
    ResultLost,
    TaskFailed,
    TooLarge,
)
from .executor import CallFuture, Executor
from .hub import AsyncHub, Hub, Job
from .graphs import task
from ._joblib import register_joblib

__all__ = [
    "AsyncHub",
    "CallFuture",
    "DependencyFailed",
    "Executor",
    "Hub",
    "HubError",
    "HubUnreachable",
    "Job",
    "LaboroError",
    "PythonMismatch",
    "RemoteTraceback",
    "ResultLost",
    "TaskFailed",
    "TooLarge",
    "register_joblib",
    "task",
]
