"""What calls and their answers are made of, as bytes: the same for both ends.

A payload is a function, pickled by value with cloudpickle, behind a line that says which Python made it. A value is the
arguments of one call. An answer is what the function returned, or the exception with its traceback as text.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional, Tuple

import cloudpickle

from .errors import PythonMismatch, RemoteTraceback

#: What goes to a call or comes back from it; more belongs in a file.
BYTES_MAX = 1 << 20

#: Pickles of 3.8 and later read it.
_PROTOCOL = 5

_HEAD = b"laboro-python-call 1 "

#: How the value of a call is to be read.
_ONE, _CHUNK, _FILE = b"1", b"*", b"@"


@dataclass
class Answer:
    ok: bool
    result: bytes
    message: str = ""


def dump_function(function: Callable[..., Any]) -> bytes:
    """The payload of calls of a function."""
    version = "%d.%d" % sys.version_info[:2]
    return _HEAD + version.encode() + b"\n" + cloudpickle.dumps(function, protocol=_PROTOCOL)


def dump_arguments(args: Tuple[Any, ...], kwargs: dict) -> bytes:
    """The value of one call."""
    return _ONE + _dumps((args, kwargs))


def dump_chunk(chunk: Iterable[Tuple[Any, ...]]) -> bytes:
    """The value of one call that stands for several."""
    return _CHUNK + _dumps(list(chunk))


def dump_path(path: str) -> bytes:
    """The value of a call whose arguments are in a file that workers can read."""
    return _FILE + path.encode()


def same_value(before: bytes, now: bytes) -> bool:
    """Whether two values are the same call. Where arguments were in files it cannot be told."""
    if before == now or _FILE in (before[:1], now[:1]):
        return True
    try:
        # A set, say, has its elements in another order each time Python is started.
        return bool(before[:1] == now[:1] and pickle.loads(before[1:]) == pickle.loads(now[1:]))
    except Exception:
        return False


def _dumps(thing: Any) -> bytes:
    """Plain pickle is several times as fast, and cannot take what was made in ``__main__``."""
    try:
        data = pickle.dumps(thing, protocol=_PROTOCOL)
    except Exception:
        return cloudpickle.dumps(thing, protocol=_PROTOCOL)
    # Anything of __main__ would be looked for in the runner's.
    if b"__main__" in data:
        return cloudpickle.dumps(thing, protocol=_PROTOCOL)
    return data


class Function:
    """A function as a runner has it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, value: Optional[bytes]) -> Answer:
        function = self.function
        if value is None:
            return success(function())
        kind, rest = value[:1], memoryview(value)[1:]
        if kind == _FILE:
            with open(bytes(rest).decode(), "rb") as file:
                value = file.read()
            kind, rest = value[:1], memoryview(value)[1:]
        if kind == _ONE:
            args, kwargs = pickle.loads(rest)
            return success(function(*args, **kwargs))
        if kind == _CHUNK:
            return success([function(*args) for args in pickle.loads(rest)])
        raise ValueError("the call was made by a newer laboro_hub: update it where workers run")


def load_function(payload: bytes) -> Function:
    """The function of a payload. Refuses one that another Python made: its bytecode is not ours."""
    head, _, pickled = payload.partition(b"\n")
    if not head.startswith(_HEAD):
        raise ValueError("the call was not made by laboro_hub, or by a newer one")
    theirs = head[len(_HEAD) :].decode(errors="replace")
    ours = "%d.%d" % sys.version_info[:2]
    if theirs != ours:
        raise PythonMismatch(
            f"the call was made with Python {theirs} and the worker runs Python {ours}: "
            f"give the executor a runner with the same minor version, "
            f'such as Executor(python="python{theirs}")'
        )
    return Function(pickle.loads(pickled))


def success(result: Any) -> Answer:
    data = _dumps(result)
    if len(data) > BYTES_MAX:
        raise ValueError(
            f"the result has {len(data)} bytes pickled; at most {BYTES_MAX} are taken back: "
            f"write it to a file or a shared directory and return the path"
        )
    return Answer(True, data)


def failure(error: BaseException) -> Answer:
    """An exception as bytes, with its traceback as text, also where it cannot be pickled."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    message = "".join(traceback.format_exception_only(type(error), error)).strip()
    text = text[-65536:]
    try:
        data = _dumps((error.with_traceback(None), text))
        pickle.loads(data)
        if len(data) > BYTES_MAX:
            raise ValueError
    except Exception:
        data = _dumps((RuntimeError(f"{type(error).__name__}: {error}"[:65536]), text))
    return Answer(False, data, message)


def load_result(data: bytes) -> Any:
    return pickle.loads(data)


def load_error(data: bytes) -> BaseException:
    """The exception of a failed call. Its cause shows the traceback of the other side."""
    error, text = pickle.loads(data)
    error.__cause__ = RemoteTraceback(text)
    return error
