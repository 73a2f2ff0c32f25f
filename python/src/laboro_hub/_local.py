"""A hub and a worker of this process's own. They end with it, however it ends, and are started again when they die."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List

from .errors import LaboroError

_PREFIX = "laboro-local-"


def program() -> str:
    """The program ``laboro``: ``LABORO_PROGRAM``, the one that was installed with this package, or the one in the path."""
    own = os.path.join(sysconfig.get_path("scripts"), "laboro")
    for candidate in (os.environ.get("LABORO_PROGRAM"), own, shutil.which("laboro")):
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
        _remove_abandoned()
        self.dir = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock_file = _locked(self.dir)
        self.slots = slots
        self.durability = durability
        # The same after a restart, so that its worker finds it again.
        self.ports = [_free_port(), _free_port()]
        self.processes: Dict[str, subprocess.Popen] = {}
        self._owner = os.getpid()
        self._is_stopped = threading.Event()
        self._lock = threading.Lock()
        atexit.register(self.stop)
        try:
            self._keep("hub", self._start_hub)
            self._await_hub()
            self._keep("worker", self._start_worker)
        except BaseException:
            self.stop()
            raise

    def _keep(self, name: str, start: Callable[[], subprocess.Popen]) -> None:
        """Starts a process, and starts it again whenever it dies before its time."""
        self.processes[name] = start()

        def watch() -> None:
            pause = 0.1
            while True:
                began = time.monotonic()
                self.processes[name].wait()
                pause = 0.1 if time.monotonic() - began > 10 else min(2 * pause, 5.0)
                if self._is_stopped.wait(pause):
                    return
                with self._lock:
                    if self._is_stopped.is_set():
                        return
                    self.processes[name] = start()

        threading.Thread(target=watch, name=f"laboro-{name}", daemon=True).start()

    def _start_hub(self) -> subprocess.Popen:
        http, native = (f"127.0.0.1:{port}" for port in self.ports)
        where = ["--dir", str(self.dir), "--http", http, "--native", native]
        return self._start(["hub", *where, "--durability", self.durability])

    def _await_hub(self) -> None:
        access = self.dir / "access.toml"
        give_up = time.monotonic() + 30
        while not access.exists():
            if self.processes["hub"].poll() is not None or time.monotonic() > give_up:
                raise LaboroError(f"the hub did not start: {self._log()}")
            time.sleep(0.01)

    def _start_worker(self) -> subprocess.Popen:
        return self._start(["worker", str(self.dir), "-j", str(self.slots), "--name", "local"])

    def _start(self, words: List[str]) -> subprocess.Popen:
        with open(self.dir / "log", "ab") as log:
            return subprocess.Popen(
                [self.program, *words, "--exit-with", str(os.getpid())],
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
        # A child made by fork has the same hub and does not own it.
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        with self._lock:
            self._is_stopped.set()
            processes = [self.processes[name] for name in ("worker", "hub") if name in self.processes]
        for process in processes:
            if process.poll() is not None:
                continue
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        self._lock_file.close()


def _locked(directory: Path):
    """A file that is locked as long as this process lives. It has its name only when it is locked."""
    file = open(directory / "lock.new", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    os.rename(directory / "lock.new", directory / "lock")
    return file


def _remove_abandoned() -> None:
    """Directories whose process was killed: nobody holds their lock."""
    for directory in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            if directory.stat().st_uid != os.getuid():
                continue
            with open(directory / "lock") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue
