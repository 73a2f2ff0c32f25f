"""Requests to a hub: over its unix socket where that is there, else over TLS with exactly its certificate."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
from typing import Any, Dict, Iterator, Optional, Tuple

from ._access import Access
from .errors import HubError, HubUnreachable

BASE = "/api/v1/"

#: What a connection that is gone looks like.
BROKEN = (OSError, http.client.HTTPException)


class _Local(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self.path)
        except OSError:
            self.sock.close()
            raise


class _Pinned(http.client.HTTPSConnection):
    """Exactly this certificate, whatever names and dates stand in it."""

    def __init__(self, host: str, port: int, wanted: bytes, timeout: Optional[float]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        super().__init__(host, port, timeout=timeout, context=context)
        self.wanted = wanted

    def connect(self) -> None:
        super().connect()
        shown = self.sock.getpeercert(binary_form=True) or b""  # type: ignore[union-attr]
        if hashlib.sha256(shown).digest() != self.wanted:
            self.close()
            raise HubUnreachable(
                f"{self.host}:{self.port} has another certificate than the access file: "
                f"it is another hub, or its certificate was made anew"
            )
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Transport:
    """Makes requests for any number of threads, each over a connection of its own."""

    def __init__(self, access: Access, timeout: float = 60.0) -> None:
        self.access = access
        self.timeout = timeout
        self._own = threading.local()
        der = ssl.PEM_cert_to_DER_cert(_first_certificate(access.certificate))
        self._wanted = hashlib.sha256(der).digest()

    def connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        """A new connection to the hub, by the first way that works."""
        failure: Optional[Exception] = None
        path = self.access.socket
        if path and os.path.exists(path):
            try:
                connection: http.client.HTTPConnection = _Local(path, timeout)
                connection.connect()
                return connection
            except OSError as error:
                failure = error
        for address in self.access.addresses:
            host, _, port = address.rpartition(":")
            try:
                connection = _Pinned(host.strip("[]"), int(port), self._wanted, timeout)
                connection.connect()
                return connection
            except (OSError, ValueError) as error:
                failure = error
        raise HubUnreachable(f"no hub answers at {self.where}: {failure}")

    @property
    def where(self) -> str:
        return ", ".join(filter(None, [self.access.socket, self.access.http])) or "no address"

    def _headers(self) -> dict:
        return {"Authorization": "Bearer " + self.access.token}

    def request(
        self, method: str, path: str, body: Any = None, *, timeout: Optional[float] = None
    ) -> Any:
        """One request, its answer as JSON. A connection that was idle for too long is made anew once."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers()
        if data is not None:
            headers["Content-Type"] = "application/json"
        for attempt in (0, 1):
            connection = getattr(self._own, "connection", None)
            is_fresh = connection is None
            if connection is None:
                connection = self._own.connection = self.connect(self.timeout)
            if connection.sock is not None:
                connection.sock.settimeout(timeout or self.timeout)
            try:
                connection.request(method, BASE + path, data, headers)
                response = connection.getresponse()
                answer = response.read()
            except BROKEN as error:
                self.hang_up()
                # Nothing of the answer came: a kept connection was closed meanwhile. What changes something is only
                # asked again by whoever knows that it may be.
                if attempt == 0 and not is_fresh and (method == "GET" or _was_idle(error)):
                    continue
                raise HubUnreachable(f"the hub at {self.where} did not answer: {error}") from error
            except BaseException:
                # Ctrl-C in the middle of an answer: the next request would find the rest of it.
                self.hang_up()
                raise
            return _decoded(response, answer)
        raise AssertionError("the second attempt returns or raises")

    def stream(
        self, path: str, timeout: float = 45.0, headers: Optional[Dict[str, str]] = None
    ) -> http.client.HTTPResponse:
        """An answer that is read bit by bit, over a connection of its own."""
        connection = self.connect(timeout)
        try:
            connection.request("GET", BASE + path, headers={**self._headers(), **(headers or {})})
            response = connection.getresponse()
            if response.status != 200:
                _decoded(response, response.read())
        except BROKEN as error:
            connection.close()
            raise HubUnreachable(f"the hub at {self.where} did not answer: {error}") from error
        # The connection lives as long as its answer is read.
        response.laboro_connection = connection  # type: ignore[attr-defined]
        return response

    def hang_up(self) -> None:
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def retrying(self, method: str, path: str, body: Any = None, *, patience: float = 300.0) -> Any:
        """The same, again and again while no hub answers: it may be starting. For what may be said twice."""
        pause, give_up = 0.05, time.monotonic() + patience
        while True:
            try:
                return self.request(method, path, body)
            except HubUnreachable:
                if time.monotonic() + pause > give_up:
                    raise
            except HubError as error:
                if error.status not in (502, 503) or time.monotonic() + pause > give_up:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def _was_idle(error: BaseException) -> bool:
    return isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError))


def _first_certificate(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    start = pem.find("-----BEGIN CERTIFICATE-----")
    return pem[start : pem.index(end) + len(end)]


def _decoded(response: http.client.HTTPResponse, answer: bytes) -> Any:
    if response.status >= 400:
        try:
            problem = json.loads(answer)
        except ValueError:
            problem = {}
        detail = problem.get("detail") or f"HTTP status {response.status}"
        raise HubError(detail, problem.get("reason", ""), response.status, problem.get("hint") or "")
    return json.loads(answer) if answer else None


def break_off(response: http.client.HTTPResponse) -> None:
    """Wakes the thread that reads it."""
    sock = getattr(response.laboro_connection, "sock", None)  # type: ignore[attr-defined]
    if sock is None:
        sock = getattr(getattr(response.fp, "raw", None), "_sock", None)
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def frames(response: http.client.HTTPResponse) -> Iterator[Tuple[int, int, int, int, int, str, bytes]]:
    """Results as they come: task, state, flags, outcome, code, message, result. See spec/results.md."""
    import struct

    head = struct.Struct("<IBBBBiI")
    buffer = bytearray()
    while True:
        piece = response.read1(1 << 18)
        if not piece:
            if response.isclosed() and not buffer:
                return
            raise http.client.IncompleteRead(bytes(buffer))
        buffer += piece
        at, end = 0, len(buffer)
        while end - at >= 4:
            length = int.from_bytes(buffer[at : at + 4], "little")
            if end - at - 4 < length:
                break
            at += 4
            if length:
                task, state, flags, outcome, _, code, words = head.unpack_from(buffer, at)
                start = at + head.size + words
                message = bytes(buffer[at + head.size : start]).decode(errors="replace")
                yield task, state, flags, outcome, code, message, bytes(buffer[start : at + length])
                at += length
        del buffer[:at]
