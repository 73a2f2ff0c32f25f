"""A foreman like fuq's own, for a worker that is to be tried: one job, one node, by websocket or by polling. Says
what it heard as JSON when it is told to end. What it has given it gives to nobody else, whatever becomes of it; a
websocket on which a JOB is refused it closes; and to a result that it has it says 500."""

import base64
import json
import os
import signal
import ssl
import struct
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgpack
from websockets.server import ServerProtocol

from peer import CANCEL, ERROR, HELLO, JOB, OK, STOP, UPDATE, counts, message

mode, place, tasks, *more = sys.argv[1:]
tasks = int(tasks)
password = "sekrit"
stop_type = int(more[0]) if more else STOP
heard = {"hellos": [], "given": [], "updates": [], "known": 0, "bad": [], "connections": 0}
cookies, ended = set(), threading.Event()
job = {
    "job_id": 3, "name": "sim", "num_tasks": tasks, "working_dir": place,
    "logging_dir": place + "/logs", "command": place + "/say", "status": "running",
}
described = {
    "JobId": 3, "Name": "sim", "NumTasks": tasks, "WorkingDir": place,
    "LoggingDir": place + "/logs", "Command": place + "/say", "Status": 1,
}


def expect(is_so, what):
    if not is_so:
        heard["bad"].append(what)


def take(task, success, status):
    """Whether it is news."""
    if any(task == known for known, _, _ in heard["updates"]):
        heard["known"] += 1
        return False
    heard["updates"].append([task, success, status])
    return True


class Persistent:
    """The foreman's side of a websocket, one request of ours at a time."""

    def __init__(self, handler):
        self.wire, self.protocol, self.seq = handler.connection, ServerProtocol(), 1
        request = f"GET {handler.path} HTTP/1.1\r\n{handler.headers}".replace("\n", "\r\n")
        request = request.replace("\r\r\n", "\r\n")
        self.protocol.receive_data(request.encode())
        self.protocol.send_response(self.protocol.accept(self.protocol.events_received()[0]))
        self.flush()
        self.waiting, self.is_stopped, self.has_met = [], False, False

    def flush(self):
        for piece in self.protocol.data_to_send():
            if piece:
                self.wire.sendall(piece)

    def say(self, kind, arg0=0, body=None):
        self.seq += 2
        self.protocol.send_binary(message(kind, self.seq, arg0, body))
        self.flush()
        return self.seq

    def frames(self):
        while True:
            for event in self.protocol.events_received():
                if event.opcode == 2:
                    yield event.data
                elif event.opcode == 8:
                    return
            data = self.wire.recv(65536)
            if not data:
                return
            self.protocol.receive_data(data)
            self.flush()

    def next(self):
        if Foreman.left:
            number = Foreman.left.pop(0)
            heard["given"].append(number)
            task = {"Task": number, "JobDescription": described}
            self.waiting.append(self.say(JOB, body=[task]))
        elif not self.is_stopped and self.running == 0:
            self.is_stopped = True
            self.waiting.append(self.say(stop_type, self.free))

    def converse(self):
        self.running, self.cancelled = 0, False
        for frame in self.frames():
            magic, kind, subtype, seq, padding, arg0 = struct.unpack_from("<HBBIII", frame)
            mark = int.from_bytes(b"LABO", "little") if kind == HELLO else 0
            expect(magic == 0xC047 and padding == mark, f"header {frame[:16].hex()}")
            if kind == HELLO:
                self.has_met = True
                hello = msgpack.unpackb(frame[16:])
                expect(list(hello) == ["NumProcs", "Running"] and seq % 2 == 0, f"hello {hello}")
                self.free, self.running = hello["NumProcs"], len(hello["Running"])
                heard["hellos"].append(hello["NumProcs"])
                self.protocol.send_binary(message(OK, seq, counts(self.free, self.running)))
                self.protocol.send_ping(b"PING:f2w:1")
                self.flush()
                self.next()
            elif kind == UPDATE:
                update = msgpack.unpackb(frame[16:])
                keys = ["JobId", "Task", "Success", "Status", "NewJob"]
                expect(list(update) == keys, f"update {update}")
                take(update["Task"], update["Success"], update["Status"])
                if not self.has_met:
                    self.protocol.send_binary(message(OK, seq, 0xFFFFFFFF))
                    self.flush()
                    continue
                self.running, self.free = self.running - 1, self.free + 1
                self.seq = max(self.seq, seq | 1)
                self.protocol.send_binary(message(OK, seq, counts(self.free, self.running)))
                self.flush()
                if not self.waiting:
                    self.next()
            elif kind == OK:
                expect(self.waiting.pop(0) == seq, "an OK for nothing")
                free, running = arg0 >> 16, arg0 & 0xFFFF
                if seq == self.cancelled:
                    expect((free, running) == (1, 0), f"cancelled {free}|{running}")
                    continue
                if self.is_stopped:
                    expect((free, running) == (0, 0), f"stopped with {free}|{running}")
                    continue
                self.free, self.running = free, running
                if mode == "cancel" and not self.cancelled:
                    self.cancelled = self.say(CANCEL, body=[{"JobId": 3, "Task": -1}])
                    self.waiting.append(self.cancelled)
                elif free > 0:
                    self.next()
            else:
                expect(False, f"message type {kind}")
                if kind == ERROR:
                    break
        print("closed", flush=True)
        heard["close"] = self.protocol.close_rcvd and self.protocol.close_rcvd.code
        ended.set()


class Foreman(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock, left, stops = threading.Lock(), list(range(1, tasks + 1)), 0

    def setup(self):
        super().setup()
        with self.lock:
            heard["connections"] += 1

    def log_message(self, *_):
        pass

    def answer(self, value, status=HTTPStatus.OK, cookie=None):
        body = (json.dumps(value) + "\n").encode()
        self.send_response(status)
        if cookie:
            self.send_header("Set-Cookie", f"fuq_foreman_auth={cookie}; Path=/; HttpOnly")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_known(self):
        cookie = self.headers.get("Cookie", "").removeprefix("fuq_foreman_auth=")
        if cookie not in cookies:
            self.answer("cannot validate cookie", 403)
        return cookie in cookies

    def do_GET(self):
        if self.path == "/node/persistent" and self.is_known():
            Persistent(self).converse()
            self.close_connection = True

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path in ("/hello", "/node/reauth"):
            hello = said["msg"] if self.path == "/node/reauth" else said
            if hello["auth"] != password:
                return self.answer("403 access forbidden", 403)
            expect(hello["nproc"] > 0 and hello["node"] and hello["pid"], f"hello {hello}")
            if self.path == "/node/reauth":
                heard["reauths"] = heard.get("reauths", 0) + 1
                expect(hello["unique_name"] == "vm:1:1", f"reauth {hello}")
            cookie = base64.b64encode(os.urandom(16)).decode().rstrip("=")
            cookies.add(cookie)
            welcome = {"Name": "vm:1:1", "Session": "s" * 22, "Cookie": cookie}
            self.answer(welcome, cookie=cookie)
            if mode == "forgetful" and not heard.get("reauths"):
                cookies.clear()
            return None
        if not self.is_known():
            return None
        if self.path == "/node/leave":
            return self.answer("404 page not found", 404)
        if self.path == "/job/update":
            if not take(said["task"], said["success"], said["status"]):
                return self.answer("500 internal error", 500)
            if mode == "lossy" and said["task"] % 3 == 0:
                self.close_connection = True
                return None
        else:
            expect(self.path == "/job/request" and said == {"nproc": 1}, f"{self.path} {said}")
        if self.path == "/job/update" and said["newjob"] is None:
            return self.answer([])
        with self.lock:
            number = Foreman.left.pop(0) if Foreman.left else None
            is_over = len(heard["updates"]) == tasks
        if number is not None:
            heard["given"].append(number)
            return self.answer([{"task": number} | job])
        stop = job | {"task": -1, "job_id": 0, "name": "::stop::"}
        if not is_over:
            # The original waits; so do we, for the last result.
            while len(heard["updates"]) < tasks:
                ended.wait(0.01)
        if mode == "idle":
            print("idle", flush=True)
            over.wait()
        self.answer([stop])
        ended.set()
        return None


os.makedirs(place + "/logs", exist_ok=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(place + "/hub/tls.pem")
server = ThreadingHTTPServer(("127.0.0.1", 0), Foreman)
server.daemon_threads = True
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: over.set())
print(f"on 127.0.0.1:{server.server_address[1]}", flush=True)
over.wait()
print(json.dumps(heard), flush=True)
