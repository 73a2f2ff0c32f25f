"""The Python runner: a process that a worker keeps, and that takes one call after the other.

Started by a worker as ``python3 -m laboro_hub.serve``. What it says and hears is in ``spec/runner.md``; what a call
is made of is in :mod:`laboro_hub._calls`. Nothing here talks to a hub.
"""

from __future__ import annotations

import fcntl
import io
import os
import select
import struct
import sys
import termios
import time
from typing import Any, Optional

from . import _calls

_LENGTH = struct.Struct("<I")
_CALL = struct.Struct("<QIIIIII")
_ID = struct.Struct("<Q")

_PAYLOAD, _CALL_KIND, _SKIP = 1, 2, 3
_READY, _DONE, _FAILED, _SKIPPED = 1, 2, 3, 4

#: Calls that may wait in the pipe behind the one under way.
_AHEAD = 32


class _Runner:
    def __init__(self, calls: int, answers: int) -> None:
        self.calls = calls
        self.answers = answers
        self.heard = bytearray()
        self.queue: list[Any] = []
        self.skipped: set[int] = set()
        self.payload = b""
        self.function: Optional[_calls.Function] = None

    def run(self) -> None:
        words = "python " + ".".join(map(str, sys.version_info[:3]))
        self.say(_READY, struct.pack("<II", 1, _AHEAD), words.encode())
        while self.hear():
            while self.queue:
                kind, body = self.queue.pop(0)
                if kind == _PAYLOAD:
                    self.payload, self.function = body, None
                elif kind == _CALL_KIND:
                    self.call(body)
                    self.peek()

    def hear(self) -> bool:
        """Waits for more. False: the worker is gone."""
        piece = os.read(self.calls, 1 << 18)
        self.take(piece)
        return bool(piece)

    def peek(self) -> None:
        """Whatever is in the pipe: a call that shall be skipped may be among what waits."""
        if select.select([self.calls], [], [], 0)[0]:
            self.take(os.read(self.calls, 1 << 18))

    def take(self, piece: bytes) -> None:
        self.heard += piece
        at, end = 0, len(self.heard)
        while end - at >= 4:
            (length,) = _LENGTH.unpack_from(self.heard, at)
            if end - at - 4 < length:
                break
            kind = self.heard[at + 4]
            body = bytes(self.heard[at + 5 : at + 4 + length])
            if kind == _SKIP:
                self.skipped.add(_ID.unpack(body)[0])
            else:
                self.queue.append((kind, body))
            at += 4 + length
        del self.heard[:at]

    def call(self, body: bytes) -> None:
        number, job, task, index, attempt, has_value, name_length = _CALL.unpack_from(body)
        if number in self.skipped:
            self.skipped.discard(number)
            self.say(_SKIPPED, _ID.pack(number))
            return
        at = _CALL.size + name_length
        environ = os.environ
        environ["LABORO_TASK"] = body[_CALL.size : at].decode(errors="replace")
        environ["LABORO_JOB"] = str(job)
        environ["LABORO_INDEX"] = str(index)
        environ["LABORO_ATTEMPT"] = str(attempt)
        answer: _calls.Answer
        try:
            if self.function is None:
                self.function = _calls.load_function(self.payload)
            answer = self.function(body[at:] if has_value else None)
        except SystemExit as exit:  # A function that ends the process fails; the process stays.
            answer = _calls.failure(exit)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer = _calls.failure(error)
        _settle_output()
        if answer.ok:
            self.say(_DONE, _ID.pack(number), answer.result)
        else:
            message = answer.message.encode(errors="replace")[:4096]
            head = struct.pack("<QiI", number, 1, len(message))
            self.say(_FAILED, head, message, answer.result)
        # A cancelled call that was answered before its SKIP came leaves its number behind.
        if len(self.skipped) > 1024:
            self.skipped.clear()

    def say(self, kind: int, *parts: bytes) -> None:
        body = b"".join(parts)
        data = memoryview(_LENGTH.pack(1 + len(body)) + bytes([kind]) + body)
        while data:
            data = data[os.write(self.answers, data) :]


def _settle_output() -> None:
    """What this call printed is the worker's before the answer is: then it is known whose it was."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    waited = 0.0
    for descriptor in (1, 2):
        while waited < 10.0 and _unread(descriptor) > 0:
            time.sleep(0.0002)
            waited += 0.0002


class _Gated(io.RawIOBase):
    """A descriptor that is written to only when the worker has the last answer, so that it knows whose words these are."""

    def __init__(self, descriptor: int, answers: int) -> None:
        self.descriptor = descriptor
        self.answers = answers

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def write(self, data: Any) -> int:
        waited = 0.0
        while waited < 10.0 and _unread(self.answers) > 0:
            time.sleep(0.00005)
            waited += 0.00005
        return os.write(self.descriptor, data)


def _stream(descriptor: int, answers: int) -> io.TextIOWrapper:
    raw = io.BufferedWriter(_Gated(descriptor, answers))
    return io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", line_buffering=True)


def _unread(descriptor: int) -> int:
    try:
        count = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return 0
    return struct.unpack("i", count)[0]


def main() -> None:
    try:
        calls = os.open(os.environ.pop("LABORO_CALLS"), os.O_RDONLY | os.O_CLOEXEC)
        answers = os.open(os.environ.pop("LABORO_ANSWERS"), os.O_WRONLY | os.O_CLOEXEC)
    except KeyError:
        sys.exit("laboro_hub.serve is started by a worker: LABORO_CALLS and LABORO_ANSWERS are not set")
    sys.stdout = _stream(1, answers)
    sys.stderr = _stream(2, answers)
    sys.path.insert(0, os.getcwd())
    _Runner(calls, answers).run()


if __name__ == "__main__":
    main()
