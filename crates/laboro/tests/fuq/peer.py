"""fuq's own ways of speaking, with nothing of ours in them: HTTPS from the standard library, the frames of websockets
and msgpack from PyPI."""

import http.client
import json
import socket
import ssl
import struct
import threading
import time

import msgpack
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.uri import parse_uri

OK, HELLO, JOB, UPDATE, CANCEL, STOP, ERROR, RESET = 1, 2, 3, 4, 5, 7, 8, 9
NO_PROCS = 2


def counts(free, running):
    return free << 16 | running


def message(kind, seq, arg0=0, body=None, subtype=0, padding=0):
    packed = b"" if body is None else msgpack.packb(body)
    arg0 = len(packed) if body is not None else arg0
    return struct.pack("<HBBIII", 0xC047, kind, subtype, seq, padding, arg0) + packed


class Web:
    """One connection that stays open, as an HTTP client with keep-alive has it."""

    def __init__(self, address, authority):
        self.address = address
        self.context = ssl.create_default_context(cafile=authority)
        self.context.check_hostname = False
        host, port = address.rsplit(":", 1)
        self.wire = http.client.HTTPSConnection(host, int(port), context=self.context, timeout=30)

    def begin(self, path, body, cookie=None, method="POST", headers=()):
        headers = dict(headers)
        if cookie is not None:
            headers["Cookie"] = f"fuq_foreman_auth={cookie}"
        text = body if isinstance(body, (bytes, str)) else json.dumps(body)
        self.wire.request(method, "/" + path, text, headers)

    def ask(self, *words, **more):
        self.begin(*words, **more)
        answer = self.wire.getresponse()
        return answer.status, answer.read().decode(), answer.headers

    def good(self, path, body, cookie=None):
        status, text, _ = self.ask(path, body, cookie)
        assert status == 200, (path, status, text)
        return json.loads(text)

    def break_off(self):
        """Ends while something is asked, and returns when that was noticed."""
        self.wire.sock.shutdown(socket.SHUT_WR)
        while self.wire.sock.recv(4096):
            pass
        self.wire.close()

    def close(self):
        self.wire.close()


class Client:
    """The command line's side."""

    def __init__(self, address, authority, password):
        self.web, self.password = Web(address, authority), password

    def envelope(self, said):
        envelope = {"auth": {"password": self.password, "client": "fuqcli-alpha"}}
        return envelope if said is None else envelope | {"msg": said}

    def ask(self, path, said=None):
        return self.web.good("client/" + path, self.envelope(said))

    def status(self, path, said=None):
        return self.web.ask("client/" + path, self.envelope(said))[0]

    def queue(self, name, tasks, command="/bin/true", log="/tmp"):
        job = {"job_id": 0, "name": name, "num_tasks": tasks, "working_dir": "/tmp"}
        job |= {"logging_dir": log, "command": command, "status": "waiting"}
        return self.ask("job/new", job)["job_id"]

    def jobs(self, status="", name=""):
        listed = self.ask("job/list", {"name": name, "status": status})
        return {job["Description"]["job_id"]: job for job in listed}


def log_in(web, password, slots=2, host="vm", pid=7, **more):
    hello = {"auth": password, "node": host, "pid": pid, "session": "", "nproc": slots} | more
    status, text, headers = web.ask("hello", hello)
    assert status == 200, (status, text)
    welcome = json.loads(text)
    assert list(welcome) == ["Name", "Session", "Cookie"], text
    assert len(welcome["Cookie"]) == 22 and len(welcome["Session"]) == 22, text
    cookie = headers["Set-Cookie"]
    # An end of it would make a node drop it, and then it hears 401 for ever.
    assert cookie == f"fuq_foreman_auth={welcome['Cookie']}; Path=/; HttpOnly", cookie
    return welcome


class Socket:
    """A websocket in one thread. The library's own client reads in a second one, and Python's TLS is not made for that:
    when the tickets that follow a handshake arrive while the request is written, the opening may hang."""

    def __init__(self, web, path, cookie):
        host, port = web.address.rsplit(":", 1)
        wire = socket.create_connection((host, int(port)), timeout=30)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = web.context.wrap_socket(wire)
        self.protocol = ClientProtocol(parse_uri(f"wss://{web.address}/{path}"), max_size=None)
        request = self.protocol.connect()
        request.headers["Cookie"] = f"fuq_foreman_auth={cookie}"
        self.protocol.send_request(request)
        self.flush()
        self.events = []
        self.take(time.monotonic() + 30)
        if self.protocol.handshake_exc:
            raise self.protocol.handshake_exc

    def flush(self):
        pieces = b"".join(self.protocol.data_to_send())
        if pieces:
            self.socket.sendall(pieces)

    def take(self, deadline):
        """The next event; the first is the answer to the request."""
        while not self.events:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(65536)
            except (ConnectionError, ssl.SSLError):
                data = b""
            if data:
                self.protocol.receive_data(data)
            else:
                self.protocol.receive_eof()
            try:
                self.flush()
            except OSError:
                pass
            self.events = self.protocol.events_received()
            if not data and not self.events:
                raise self.protocol.handshake_exc or self.protocol.close_exc
        return self.events.pop(0)

    def send(self, *messages):
        """All of them at once: nobody can answer the first before the last is there."""
        for data in messages:
            if isinstance(data, str):
                self.protocol.send_text(data.encode())
            else:
                self.protocol.send_binary(data)
        self.flush()

    def recv(self, timeout):
        """The next message, or the end of the conversation."""
        deadline = time.monotonic() + timeout
        while True:
            frame = self.take(deadline)
            if frame.opcode == 2:
                return frame.data

    def close(self, code, reason):
        self.protocol.send_close(code, reason)
        self.flush()
        try:
            self.recv(30)
        except ConnectionClosed:
            pass
        self.socket.close()


class Node:
    """A node that stays connected: it answers what it is asked, one message at a time."""

    def __init__(self, address, authority, password, slots=2, running=(), welcome=None, **more):
        self.web = Web(address, authority)
        self.welcome = welcome or log_in(self.web, password, slots, **more)
        self.name, self.slots, self.seq = self.welcome["Name"], slots, 0
        self.running = list(running)
        self.open()

    def open(self):
        self.socket = Socket(self.web, "node/persistent", self.welcome["Cookie"])

    def hello(self):
        free = self.slots - len(self.running)
        self.say(HELLO, {"NumProcs": free, "Running": self.running})
        self.expect_ok(counts(free, len(self.running)))

    def say(self, kind, body):
        """A request of ours."""
        self.seq = (self.seq + 1) // 2 * 2
        self.asked = self.seq
        self.socket.send(message(kind, self.seq, body=body))
        self.seq += 1

    def hear(self, timeout=30):
        bytes_ = self.socket.recv(timeout=timeout)
        magic, kind, subtype, seq, padding, arg0 = struct.unpack_from("<HBBIII", bytes_)
        assert magic == 0xC047 and padding == 0, bytes_
        body = msgpack.unpackb(bytes_[16:]) if len(bytes_) > 16 else None
        assert body is None or arg0 == len(bytes_) - 16
        self.seq = max(self.seq, seq + 1)
        return kind, subtype, seq, arg0, body

    def expect_ok(self, arg0=None):
        kind, _, seq, said, _ = self.hear()
        assert (kind, seq) == (OK, self.asked), (kind, seq, self.asked)
        assert arg0 is None or said == arg0, (hex(said), hex(arg0))

    def ok(self, seq, free, running):
        self.socket.send(message(OK, seq, counts(free, running)))

    def room(self):
        return self.slots - len(self.running), len(self.running)

    def take_job(self):
        """The next JOB, taken."""
        kind, _, seq, _, tasks = self.hear()
        assert kind == JOB and seq % 2 == 1, (kind, seq)
        assert len(tasks) == 1, "an original node is given one task at a time"
        self.running += tasks
        self.ok(seq, *self.room())
        return tasks[0]

    def update(self, task, success=True, status="done"):
        job = task["JobDescription"]["JobId"]
        update = {"JobId": job, "Task": task["Task"], "Success": success, "Status": status}
        self.running.remove(task)
        self.say(UPDATE, update | {"NewJob": None})

    def end(self, task, success=True, status="done"):
        self.update(task, success, status)
        self.expect_ok(counts(*self.room()))

    def cut(self):
        """As if the machine had died."""
        self.socket.socket.shutdown(socket.SHUT_RDWR)


class Busy(threading.Thread):
    """A node in a thread of its own; what ends it is told by `check`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.fault = None

    def run(self):
        try:
            self.work()
        except BaseException as fault:
            self.fault = fault

    def check(self):
        if self.fault:
            raise self.fault


class Stubborn(Busy):
    """An original on a websocket, with its faults: it counts its messages over all connections, says HELLO once and then
    only when it is told to, and waits for ever for an answer that was lost. Two messages that wait end it."""

    def __init__(self, address, authority, password, slots, host):
        super().__init__()
        self.web, self.slots = Web(address, authority), slots
        self.cookie = log_in(self.web, password, slots, host)["Cookie"]
        self.next, self.waiting, self.pending = 0, None, None
        self.tasks, self.ended, self.hello_is_due = [], [], True
        self.unsent = None

    def work(self):
        while True:
            try:
                self.socket = Socket(self.web, "node/persistent", self.cookie)
                if self.unsent:
                    self.send(self.unsent)
                while True:
                    self.say()
                    self.hear(self.socket.recv(timeout=3600))
            except (OSError, ConnectionClosed, InvalidStatus, EOFError):
                time.sleep(0.1)

    def send(self, data):
        self.unsent = data
        self.socket.send(data)
        self.unsent = None

    def counts(self):
        return counts(self.slots - len(self.tasks), len(self.tasks))

    def say(self):
        if self.waiting is not None:
            return
        if self.hello_is_due:
            self.hello_is_due, kind, about = False, HELLO, None
            body = {"NumProcs": self.slots - len(self.tasks), "Running": self.tasks}
        elif self.ended:
            kind, about = UPDATE, self.ended.pop(0)
            body = {"JobId": about["JobDescription"]["JobId"], "Task": about["Task"]}
            body |= {"Success": True, "Status": "done", "NewJob": None}
        else:
            return
        self.waiting, seq = (self.next, about), self.next
        self.next += 2
        self.send(message(kind, seq, body=body))

    def hear(self, data):
        _, kind, _, seq, _, arg0 = struct.unpack_from("<HBBIII", data)
        body = msgpack.unpackb(data[16:]) if len(data) > 16 else None
        self.next = max(self.next, (seq // 2 + 1) * 2)
        if self.waiting is None or seq < self.waiting[0]:
            return self.dispatch(kind, seq, body)
        if seq > self.waiting[0]:
            assert self.pending is None, "two messages wait"
            self.pending = (kind, seq, body)
            return
        about, self.waiting = self.waiting[1], None
        assert kind == OK
        if about is None:
            assert arg0 == self.counts(), (hex(arg0), hex(self.counts()))
        else:
            self.tasks.remove(about)
            self.hello_is_due |= arg0 == 0xFFFFFFFF
        if self.pending:
            pending, self.pending = self.pending, None
            self.dispatch(*pending)

    def dispatch(self, kind, seq, body):
        is_greeting = self.waiting is not None and self.waiting[1] is None
        assert kind == OK or not is_greeting, "it locks itself up"
        if kind == JOB and len(self.tasks) + len(body) > self.slots:
            self.send(message(ERROR, seq, self.counts(), subtype=NO_PROCS))
        elif kind == JOB:
            self.tasks += body
            self.send(message(OK, seq, self.counts()))
            self.ended += body
        elif kind == CANCEL:
            self.send(message(OK, seq, 0))
        else:
            assert kind == OK, kind


class Poller(Busy):
    """An original that polls: each slot for itself. A result that cannot be told is forgotten."""

    def __init__(self, address, authority, password, slots, host):
        super().__init__()
        self.where = (address, authority)
        self.cookie = log_in(Web(*self.where), password, slots, host)["Cookie"]
        self.slots = [threading.Thread(target=self.slot, daemon=True) for _ in range(slots)]

    def work(self):
        for slot in self.slots:
            slot.start()

    def slot(self):
        web, tasks = Web(*self.where), []
        while True:
            try:
                if not tasks:
                    tasks = web.good("job/request", {"nproc": 1}, self.cookie)
                    continue
                task = tasks.pop()
                update = {"job_id": task["job_id"], "task": task["task"], "success": True}
                update |= {"status": "done", "newjob": {"nproc": 1}}
                tasks = web.good("job/update", update, self.cookie)
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.1)
                web.close()
                web = Web(*self.where)
