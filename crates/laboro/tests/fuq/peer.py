"""fuq's own ways of speaking, with nothing of ours in them: HTTPS from the standard library, websockets and
msgpack from PyPI."""

import http.client
import json
import socket
import ssl
import struct

import msgpack
from websockets.sync.client import connect

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

    def ask(self, path, body, cookie=None, method="POST", headers=()):
        headers = dict(headers)
        if cookie is not None:
            headers["Cookie"] = f"fuq_foreman_auth={cookie}"
        text = body if isinstance(body, (bytes, str)) else json.dumps(body)
        self.wire.request(method, "/" + path, text, headers)
        answer = self.wire.getresponse()
        return answer.status, answer.read().decode(), answer.headers

    def good(self, path, body, cookie=None):
        status, text, _ = self.ask(path, body, cookie)
        assert status == 200, (path, status, text)
        return json.loads(text)

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
    assert cookie.startswith(f"fuq_foreman_auth={welcome['Cookie']}; Path=/; Expires="), cookie
    assert cookie.endswith(" GMT; HttpOnly"), cookie
    return welcome


class Node:
    """A node that stays connected: it answers what it is asked, one message at a time."""

    def __init__(self, address, authority, password, slots=2, running=(), welcome=None, **more):
        self.web = Web(address, authority)
        self.welcome = welcome or log_in(self.web, password, slots, **more)
        self.name, self.slots, self.seq = self.welcome["Name"], slots, 0
        self.running = list(running)
        self.open()

    def open(self):
        header = {"Cookie": f"fuq_foreman_auth={self.welcome['Cookie']}"}
        # Now and then the answer that opens it never comes; why is not known. One guess is the library, which
        # reads and writes TLS in two threads; the hub is not ruled out.
        for is_last in (False, False, False, True):
            try:
                self.socket = connect(
                    f"wss://{self.web.address}/node/persistent",
                    ssl=self.web.context,
                    additional_headers=header,
                    compression=None,
                    max_size=None,
                    open_timeout=5,
                )
                return
            except TimeoutError:
                if is_last:
                    raise

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
