"""Queues of other makers, driven over their own wire: each task is put, taken and acknowledged.

Each peer is a class with `start(dir)`, `produce(count)`, `consume(count)` and `stop()`. Requests travel in batches
of WINDOW wherever the protocol lets them, which is the best these servers can be given: they are not held back by
round trips. Nothing here measures; see `compare`.
"""
import json
import os
import shutil
import socket
import struct
import subprocess
import time

WINDOW = 100
BODY = b"/bin/true"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            link = socket.create_connection(("127.0.0.1", port))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return link, link.makefile("rb", buffering=1 << 16)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def windows(count):
    for first in range(0, count, WINDOW):
        yield range(first, min(first + WINDOW, count))


def installed(program, package):
    """Servers live in sbin, which is not on everyone's path."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    if shutil.which(program, path=path) is None:
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return shutil.which(program, path=path)


class Server:
    """A server process of its own at a free port."""

    def start(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(
            self.command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        connect(self.port)[0].close()
        self.prepare()

    def prepare(self):
        pass

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Beanstalkd(Server):
    """With a binlog that the system writes when it likes, as laboro's `os`."""

    name = "beanstalkd, binlog"
    program = installed("beanstalkd", "beanstalkd")

    def command(self, folder):
        return [self.program, "-l", "127.0.0.1", "-p", str(self.port), "-b", folder, "-F"]

    def produce(self, count):
        link, lines = connect(self.port)
        put = b"put 0 0 60 %d\r\n%s\r\n" % (len(BODY), BODY)
        for window in windows(count):
            link.sendall(put * len(window))
            for _ in window:
                assert lines.readline().startswith(b"INSERTED")

    def consume(self, count):
        link, lines = connect(self.port)
        for window in windows(count):
            link.sendall(b"reserve\r\n" * len(window))
            taken = []
            for _ in window:
                word, number, size = lines.readline().split()
                assert word == b"RESERVED"
                lines.read(int(size) + 2)
                taken.append(number)
            link.sendall(b"".join(b"delete %s\r\n" % number for number in taken))
            for _ in window:
                assert lines.readline() == b"DELETED\r\n"


class Gearman(Server):
    """Background jobs, in memory: it has no journal that keeps up."""

    name = "gearmand, memory only"
    program = installed("gearmand", "gearman-job-server")
    CAN_DO, JOB_CREATED, GRAB, NO_JOB, ASSIGN, COMPLETE, SUBMIT_BG = 1, 8, 9, 10, 11, 13, 18

    def command(self, folder):
        log = os.path.join(folder, "log")
        return [self.program, "-L", "127.0.0.1", "-p", str(self.port), "-l", log]

    @staticmethod
    def packet(kind, body=b""):
        return b"\0REQ" + struct.pack(">II", kind, len(body)) + body

    @staticmethod
    def answer(lines):
        _, kind, size = struct.unpack(">4sII", lines.read(12))
        return kind, lines.read(size)

    def produce(self, count):
        link, lines = connect(self.port)
        submit = self.packet(self.SUBMIT_BG, b"run\0\0" + BODY)
        for window in windows(count):
            link.sendall(submit * len(window))
            for _ in window:
                assert self.answer(lines)[0] == self.JOB_CREATED

    def consume(self, count):
        link, lines = connect(self.port)
        link.sendall(self.packet(self.CAN_DO, b"run"))
        done = 0
        while done < count:
            wanted = min(WINDOW, count - done)
            link.sendall(self.packet(self.GRAB) * wanted)
            finished = []
            for _ in range(wanted):
                kind, body = self.answer(lines)
                if kind == self.ASSIGN:
                    finished.append(self.packet(self.COMPLETE, body.split(b"\0", 1)[0] + b"\0"))
            link.sendall(b"".join(finished))
            done += len(finished)
        # Answered when all that was said before is taken.
        link.sendall(self.packet(self.GRAB))
        assert self.answer(lines)[0] == self.NO_JOB


class Nats(Server):
    """A JetStream work queue on disk with one pull consumer."""

    name = "NATS JetStream, file"
    program = installed("nats-server", "nats-server")

    def command(self, folder):
        return [self.program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", folder]

    def open(self):
        link, lines = connect(self.port)
        lines.readline()
        # An inbox of its own: whoever else asks gets other answers.
        self.inbox = b"in.%d" % os.getpid()
        link.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB %s 1\r\n' % self.inbox)
        return link, lines

    @staticmethod
    def message(link, lines):
        while True:
            line = lines.readline()
            if line.startswith(b"MSG"):
                words = line.split()
                body = lines.read(int(words[-1]) + 2)[:-2]
                return (words[3] if len(words) == 5 else None), body
            if line.startswith(b"HMSG"):
                words = line.split()
                lines.read(int(words[-1]) + 2)
                return None, b""
            if line.startswith(b"PING"):
                link.sendall(b"PONG\r\n")

    def ask(self, link, lines, subject, request):
        body = json.dumps(request).encode()
        link.sendall(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), self.inbox, len(body), body))
        answer = json.loads(self.message(link, lines)[1])
        assert "error" not in answer, answer
        return answer

    def prepare(self):
        link, lines = self.open()
        stream = {"name": "work", "subjects": ["work"], "retention": "workqueue", "storage": "file"}
        self.ask(link, lines, "$JS.API.STREAM.CREATE.work", stream)
        consumer = {"durable_name": "c", "ack_policy": "explicit", "max_ack_pending": 10 * WINDOW}
        request = {"stream_name": "work", "config": consumer}
        self.ask(link, lines, "$JS.API.CONSUMER.DURABLE.CREATE.work.c", request)

    def produce(self, count):
        link, lines = self.open()
        publish = b"PUB work %s %d\r\n%s\r\n" % (self.inbox, len(BODY), BODY)
        for window in windows(count):
            link.sendall(publish * len(window))
            for _ in window:
                assert b'"seq"' in self.message(link, lines)[1]

    def consume(self, count):
        link, lines = self.open()
        done = 0
        while done < count:
            wanted = json.dumps({"batch": min(WINDOW, count - done), "no_wait": True}).encode()
            next_ones = b"PUB $JS.API.CONSUMER.MSG.NEXT.work.c %s %d\r\n%s\r\n"
            link.sendall(next_ones % (self.inbox, len(wanted), wanted))
            acks = []
            for _ in range(min(WINDOW, count - done)):
                reply, _ = self.message(link, lines)
                if reply is None:
                    break  # No more at the moment.
                acks.append(b"PUB %s 4\r\n+ACK\r\n" % reply)
            link.sendall(b"".join(acks))
            done += len(acks)
        while self.ask(link, lines, "$JS.API.CONSUMER.INFO.work.c", {})["num_ack_pending"]:
            pass


PEERS = [peer for peer in (Beanstalkd, Gearman, Nats) if peer.program]
