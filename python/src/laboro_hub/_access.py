"""Which hub is meant: the access file, found as the command line finds it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Union

from .errors import LaboroError


@dataclass(frozen=True)
class Access:
    """Where a hub is and what proves who asks. ``socket`` is tried before the addresses."""

    token: str
    certificate: str
    socket: Optional[str] = None
    http: Optional[str] = None
    path: Optional[Path] = None

    @property
    def addresses(self) -> List[str]:
        return [part.strip() for part in (self.http or "").split(",") if part.strip()]


def find(access: Union[str, Path, None] = None, dir: Union[str, Path, None] = None) -> Path:
    """The access file: the one given, that of a hub's directory, ``LABORO_ACCESS``, ``LABORO_DIR``, the usual place."""
    if access is not None:
        return Path(access)
    if dir is not None:
        return Path(dir) / "access.toml"
    if os.environ.get("LABORO_ACCESS"):
        return Path(os.environ["LABORO_ACCESS"])
    if os.environ.get("LABORO_DIR"):
        return Path(os.environ["LABORO_DIR"]) / "access.toml"
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "laboro" / "hub" / "access.toml"


def read(path: Path) -> Access:
    try:
        text = path.read_text()
    except OSError as error:
        raise LaboroError(
            f"no access to a hub: {path}: {error.strerror}. Start one with `laboro hub`, "
            f"name its access file, or use Executor.local()"
        ) from None
    values = dict(_strings(text))
    if "token" not in values or "certificate" not in values:
        raise LaboroError(f"{path} is not an access file: it has no token or no certificate")
    return Access(
        token=values["token"],
        certificate=values["certificate"],
        socket=values.get("socket"),
        http=values.get("http"),
        path=path,
    )


_ENTRY = re.compile(
    r'^(\w+)\s*=\s*(?:"""\n?(.*?)"""|\'\'\'\n?(.*?)\'\'\'|"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\')',
    re.MULTILINE | re.DOTALL,
)


def _strings(text: str):
    """The strings of a TOML file of one level: Python has a reader for TOML only from 3.11 on."""
    for match in _ENTRY.finditer(text):
        name, long, raw_long, plain, raw = match.groups()
        if long is not None:
            yield name, _unescape(long)
        elif plain is not None:
            yield name, _unescape(plain)
        else:
            yield name, raw_long if raw_long is not None else raw


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    named = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
    return re.sub(r'\\([ntr"\\])', lambda match: named[match.group(1)], text)
