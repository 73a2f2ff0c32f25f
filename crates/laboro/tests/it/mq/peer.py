"""Programs of libzmq on the other side of the tests: client, worker and server as the original has them."""

import argparse
import struct
import sys

import zmq

LMQ, PING, PONG, EXEC, TRACK, RESPONSE = b"LMQv100", b"\1", b"\2", b"\3", b"\4", b"\6"
APP_PING, INCREMENT, REGISTER, DEREGISTER, STREAM = b"\1", b"\7", b"\x08", b"\x09", b"\x0a"
PATIENCE = 60_000


class Portal:
    """A socket that connects to the server, whatever its kind."""

    def __init__(self, args, name):
        kind = getattr(args, "kind", "router")
        self.socket = zmq.Context.instance().socket(zmq.ROUTER if kind == "router" else zmq.DEALER)
        self.socket.linger = 2000
        address = f"tcp://127.0.0.1:{args.port}"
        # A ROUTER must say whom it talks to: the string it connects to, as the server calls itself.
        self.to = [(getattr(args, "name", None) or address).encode()] if kind == "router" else []
        if kind != "nameless":
            self.socket.identity = f"{address}:{name}".encode()
        if kind == "router":
            self.socket.router_mandatory = 1
        self.socket.connect(address)

    def send(self, *frames):
        while True:
            try:
                return self.socket.send_multipart([*self.to, *frames])
            except zmq.ZMQError as error:
                # Not connected yet.
                if error.errno != zmq.EHOSTUNREACH:
                    raise

    def receive(self):
        if not self.socket.poll(PATIENCE):
            sys.exit("nothing came")
        return self.socket.recv_multipart()[len(self.to):]


def client(args):
    portal = Portal(args, 4711)
    portal.send(b"", LMQ, PING, b"heart", b"")
    assert portal.receive() == [b"", LMQ, PONG, b"heart", b""]
    answered = set()
    for number in range(200):
        portal.send(b"", LMQ, TRACK, struct.pack("<Q", number), APP_PING, b"")
    while len(answered) < 200:
        frames = portal.receive()
        assert frames[:3] == [b"", LMQ, RESPONSE] and frames[4] == b"" and len(frames) == 6, frames
        answered.add(frames[3])
    portal.send(b"", LMQ, TRACK, b"data", STREAM, b"STREAM_ID", b"1024", b"")
    frames = portal.receive()
    assert frames[3] == b"data" and frames[4][:2] == b"2R", frames
    print(f"pings {len(answered)}, data {len(frames[4]) - 11} bytes", flush=True)


def worker(args):
    portal = Portal(args, 815)
    portal.send(b"", LMQ, TRACK, b"reg1", REGISTER, b"10", b"")
    assert portal.receive() == [b"", LMQ, RESPONSE, b"reg1", b""]
    print("registered", flush=True)
    poller = zmq.Poller()
    poller.register(portal.socket, zmq.POLLIN)
    poller.register(sys.stdin, zmq.POLLIN)
    while True:
        ready = dict(poller.poll())
        if sys.stdin.fileno() in ready:
            portal.send(b"", LMQ, EXEC, b"WORKER", DEREGISTER, b"")
            print("left", flush=True)
            return
        frames = portal.receive()
        assert frames[:2] == [b"", LMQ], frames
        end = frames.index(b"", 4)
        command, id_, args_, back = frames[2], frames[3], frames[4:end], frames[end + 1:][::-1]
        if command == PING:
            portal.send(*back, b"", LMQ, PONG, id_, b"")
        elif command in (EXEC, TRACK):
            if command == TRACK:
                data = [] if args_[0] == APP_PING else args_[1:]
                portal.send(*back, b"", LMQ, RESPONSE, id_, *data, b"")
            portal.send(b"", LMQ, EXEC, b"inc1", INCREMENT, b"")


def unknown(args):
    args.kind = "dealer"
    portal = Portal(args, 99)
    for _ in range(args.count):
        portal.send(b"", LMQ, TRACK, b"id", b"what is this", b"")
    portal.send(b"", LMQ, PING, b"heart", b"")
    portal.receive()
    print(f"sent {args.count}", flush=True)


def lost(args):
    """Answers to somebody whom nobody knows."""
    args.kind = "dealer"
    portal = Portal(args, 98)
    for _ in range(args.count):
        portal.send(b"nobody", b"", LMQ, RESPONSE, b"id", b"")
    portal.send(b"", LMQ, PING, b"heart", b"")
    portal.receive()
    print(f"sent {args.count}", flush=True)


def server(args):
    """Enough of a server: one worker, requests to it, answers back."""
    socket = zmq.Context.instance().socket(zmq.ROUTER)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    print(port, flush=True)
    registered = None
    while True:
        sender, *frames = socket.recv_multipart()
        if frames[0]:
            socket.send_multipart([*frames, sender])
        elif frames[2] == PING:
            socket.send_multipart([sender, b"", LMQ, PONG, frames[3], b""])
        elif frames[4] == REGISTER:
            registered = sender
            print("registered", frames[5].decode(), flush=True)
            socket.send_multipart([sender, b"", LMQ, RESPONSE, frames[3], b""])
        elif frames[4] == DEREGISTER:
            print("deregistered", flush=True)
        elif frames[4] != INCREMENT:
            socket.send_multipart([registered, *frames, sender])


parser = argparse.ArgumentParser()
roles = parser.add_subparsers(required=True)
for role in (client, worker, unknown, lost, server):
    options = roles.add_parser(role.__name__)
    options.set_defaults(role=role)
    options.add_argument("--port")
    options.add_argument("--kind", default="router")
    options.add_argument("--name")
    options.add_argument("--count", type=int)
chosen = parser.parse_args()
chosen.role(chosen)
