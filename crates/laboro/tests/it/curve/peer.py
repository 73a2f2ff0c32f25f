"""libzmq's CURVE on the other side: clients of our doors, and servers for our clients.

peer.py client dwork|rrmq ADDRESS [--server-key=KEY --secret=KEY]   prints `answered`, or how it was refused
peer.py server dwork|rrmq [--deny]                                  prints its port and its public key, and serves
"""

import argparse
import sys

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

LMQ, PING, PONG, TRACK, RESPONSE = b"LMQv100", b"\1", b"\2", b"\4", b"\6"
REFUSALS = {zmq.EVENT_HANDSHAKE_FAILED_AUTH: "refused", zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "mismatch"}


def client(args):
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.linger = 0
    if args.server_key:
        socket.curve_serverkey = args.server_key.encode()
        socket.curve_secretkey = args.secret.encode()
        socket.curve_publickey = zmq.curve_public(args.secret.encode())
    monitor = socket.get_monitor_socket(sum(REFUSALS))
    socket.connect("tcp://" + args.address)
    request = [b"", b"\x08\x06"] if args.kind == "dwork" else [b"", LMQ, PING, b"heart", b""]
    socket.send_multipart(request)
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(monitor, zmq.POLLIN)
    ready = dict(poller.poll(30_000))
    if socket in ready:
        print("answered", flush=True)
    elif monitor in ready:
        event = recv_monitor_message(monitor)
        print(REFUSALS[event["event"]], event["value"], flush=True)
    else:
        sys.exit("neither answered nor refused")


def server(args):
    context = zmq.Context.instance()
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    # Nobody's key is in this list.
    authenticator.configure_curve(domain="*", location="." if args.deny else zmq.auth.CURVE_ALLOW_ANY)
    public, secret = zmq.curve_keypair()
    socket = context.socket(zmq.ROUTER)
    socket.curve_server, socket.curve_secretkey, socket.curve_publickey = True, secret, public
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    print(f"127.0.0.1:{port}", public.decode(), flush=True)
    while True:
        peer, *frames = socket.recv_multipart()
        if args.kind == "dwork":
            # Everything is fine, and there is nothing to steal.
            answer = b"\x08\x07" if frames[-1].startswith(b"\x08\x01") else b"\x08\x06"
            socket.send_multipart([peer, *frames[:-1], answer])
        elif frames[2] == PING:
            socket.send_multipart([peer, b"", LMQ, PONG, frames[3], b""])
        elif frames[2] == TRACK:
            socket.send_multipart([peer, b"", LMQ, RESPONSE, frames[3], b""])


parser = argparse.ArgumentParser()
roles = parser.add_subparsers(required=True)
for role in (client, server):
    options = roles.add_parser(role.__name__)
    options.set_defaults(role=role)
    options.add_argument("kind")
    if role is client:
        options.add_argument("address")
        options.add_argument("--server-key")
        options.add_argument("--secret")
    else:
        options.add_argument("--deny", action="store_true")
chosen = parser.parse_args()
chosen.role(chosen)
