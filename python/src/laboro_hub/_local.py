"""A hub and a worker of this process's own, which end with it."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import List, Optional

from .errors import LaboroError


def program() -> str:
    """The program ``laboro``: ``LABORO_PROGRAM``, the one in this package, or the one in the path."""
    own = Path(__file__).resolve().parent / "bin" / "laboro"
    for candidate in (os.environ.get("LABORO_PROGRAM"), str(own), shutil.which("laboro")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise LaboroError("the program laboro is not found: install it, or set LABORO_PROGRAM to its path")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LocalHub:
    """In a directory of its own, reached by its unix socket or on a port of this machine that happens to be free."""

    def __init__(self, slots: int, durability: str = "os") -> None:
        self.program = program()
        self.dir = Path(tempfile.mkdtemp(prefix="laboro-local-"))
        self.slots = slots
        self.durability = durability
        # The same after a restart, so that its worker finds it again.
        self.ports = [_free_port(), _free_port()]
        self.hub: Optional[subprocess.Popen] = None
        self.worker: Optional[subprocess.Popen] = None
        atexit.register(self.stop)
        try:
            self.start_hub()
            self.start_worker()
        except BaseException:
            self.stop()
            raise

    def start_hub(self) -> None:
        http, native = (f"127.0.0.1:{port}" for port in self.ports)
        self.hub = self._start(
            ["hub", "--dir", str(self.dir), "--http", http, "--native", native, "--durability", self.durability]
        )
        access = self.dir / "access.toml"
        give_up = time.monotonic() + 30
        while not access.exists():
            if self.hub.poll() is not None or time.monotonic() > give_up:
                raise LaboroError(f"the hub did not start: {self._log()}")
            time.sleep(0.01)

    def start_worker(self) -> None:
        self.worker = self._start(["worker", str(self.dir), "-j", str(self.slots), "--name", "local"])

    def _start(self, words: List[str]) -> subprocess.Popen:
        with open(self.dir / "log", "ab") as log:
            return subprocess.Popen(
                [self.program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _log(self) -> str:
        try:
            return (self.dir / "log").read_text(errors="replace")[-2000:]
        except OSError:
            return "it left no words"

    def stop(self) -> None:
        atexit.unregister(self.stop)
        for process in (self.worker, self.hub):
            if process is None or process.poll() is not None:
                continue
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
