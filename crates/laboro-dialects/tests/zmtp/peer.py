"""libzmq peers for the tests beside. Each command is one peer: it says `ok` when all went as it should, or
what happened instead. Nothing here knows anything of Laboro."""

import argparse
import sys

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

PATIENCE_MS = 20_000

SHAPES = [
    [b""],
    [b"a"],
    [b"x" * 255],
    [b"x" * 256],
    [b"", b"", b"y" * 70_000, b""],
    [bytes([i]) for i in range(50)],
    [b"z" * 1_000_000],
]


def socket(args, kind):
    s = zmq.Context.instance().socket(getattr(zmq, kind))
    s.setsockopt(zmq.LINGER, 1000)
    s.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
    s.setsockopt(zmq.SNDTIMEO, PATIENCE_MS)
    if args.identity:
        s.setsockopt(zmq.IDENTITY, args.identity.encode())
    if args.server_key:
        s.curve_serverkey = args.server_key.encode()
    if args.public:
        s.curve_publickey = args.public.encode()
        s.curve_secretkey = args.secret.encode()
    if args.heartbeat:
        s.setsockopt(zmq.HEARTBEAT_IVL, 50)
        s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 400)
        s.setsockopt(zmq.HEARTBEAT_TTL, 1000)
    return s


def address(args):
    return f"tcp://127.0.0.1:{args.port}"


def echoed(s, shapes, envelope=()):
    """Everything is sent, then everything is wanted back."""
    envelope = list(envelope)
    for shape in shapes:
        s.send_multipart(envelope + shape)
    for shape in shapes:
        got = s.recv_multipart()
        if got != envelope + shape:
            sys.exit(f"sent {shape!r:.100}, got {got!r:.100}")


def client(args):
    s = socket(args, args.kind)
    if args.heartbeat:
        monitor = s.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    s.connect(address(args))
    if args.kind == "REQ":
        for shape in SHAPES:
            echoed(s, [shape])
    elif args.kind == "ROUTER":
        s.setsockopt(zmq.ROUTER_MANDATORY, 1)
        # A ROUTER can send once it knows the other; the other speaks first.
        sender, word = s.recv_multipart()
        assert (sender, word) == (b"hub", b"hello"), (sender, word)
        echoed(s, SHAPES, [b"hub"])
    else:
        echoed(s, SHAPES)
    if args.heartbeat:
        # Many times the interval, and longer than the timeout: without PONGs it would be over.
        if monitor.poll(1500):
            sys.exit(f"heartbeats: {recv_monitor_message(monitor)}")
        echoed(s, SHAPES)
    s.close()
    print("ok")


def refused(args):
    """How the attempt to connect ends."""
    s = socket(args, args.kind)
    monitor = s.get_monitor_socket()
    s.connect(address(args))
    names = {
        zmq.EVENT_HANDSHAKE_SUCCEEDED: "succeeded",
        zmq.EVENT_HANDSHAKE_FAILED_AUTH: "denied",
        zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "protocol",
        zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "failed",
        zmq.EVENT_DISCONNECTED: "disconnected",
    }
    while monitor.poll(PATIENCE_MS):
        event = recv_monitor_message(monitor)
        if event["event"] in names:
            print(names[event["event"]], event["value"])
            return
    print("nothing")


class Allowed:
    def __init__(self, key):
        self.key = key

    def callback(self, domain, key):
        return key.decode() == self.key


def server(args):
    """Echoes until standard input ends. Says its port first."""
    if args.allow:
        authenticator = ThreadAuthenticator(zmq.Context.instance())
        authenticator.start()
        authenticator.configure_curve_callback(credentials_provider=Allowed(args.allow))
    s = socket(args, args.kind)
    if args.secret:
        s.curve_server = True
    print(s.bind_to_random_port("tcp://127.0.0.1"), flush=True)
    poller = zmq.Poller()
    poller.register(s, zmq.POLLIN)
    poller.register(sys.stdin, zmq.POLLIN)
    while True:
        ready = dict(poller.poll())
        if sys.stdin.fileno() in ready:
            break
        s.send_multipart(s.recv_multipart())
    if args.allow:
        authenticator.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["client", "refused", "server"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--kind", default="DEALER")
    parser.add_argument("--identity")
    parser.add_argument("--server-key")
    parser.add_argument("--public")
    parser.add_argument("--secret")
    parser.add_argument("--allow")
    parser.add_argument("--heartbeat", action="store_true")
    args = parser.parse_args()
    {"client": client, "refused": refused, "server": server}[args.command](args)


if __name__ == "__main__":
    main()
