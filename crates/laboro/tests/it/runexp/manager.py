"""A runexp manager written for the tests, without a line of the programs under test: as careless as the original,
it takes one read of 1024 bytes for one message, and holds for one connection.
Usage: manager.py SCRIPT... ; prints its port, then a line a result, then OK."""
import re
import socket
import sys

jobs = list(enumerate(sys.argv[1:], 1))
door = socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
line, _ = door.accept()
line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def hear(pattern):
    message = line.recv(1024)
    match = re.fullmatch(pattern, message, re.S)
    if not match:
        print("garbage", message, flush=True)
        sys.exit(1)
    return match


hear(rb"SALUTON; MI [-_a-zA-Z0-9]+")
line.sendall(b"VERSIO 1.3")
hear(rb"KOMPRENAS")
line.sendall(b"ALIGI __defaulte__")
hear(rb"JES")
waits, running = 1, 0
while True:
    match = hear(rb"PETO|FINO ANKAU|REZULTO (.+) (success|failure) (\d+)")
    word = match.group(0)
    if word == b"FINO ANKAU":
        break
    if word == b"PETO":
        if running and waits:
            # Once, to see that it comes back by itself when it has handed something in.
            waits -= 1
            line.sendall(b"ATENDI")
        elif jobs:
            number, script = jobs.pop(0)
            body = script.encode()
            line.sendall(b"LABORO job %d .sh %d" % (number, len(body)))
            hear(rb"PRETA")
            if body:
                line.sendall(body)
            running += 1
        else:
            line.sendall(b"FINO")
        continue
    size = int(match.group(3))
    line.sendall(b"PRETA")
    body = b""
    while len(body) < size:
        piece = line.recv(size - len(body))
        if not piece:
            print("cut", flush=True)
            sys.exit(1)
        body += piece
    assert body.startswith(b"runexp summary: " + match.group(2) + b"\n\n"), body
    output = body.split(b"Program output follows\n\n", 1)[1]
    print(match.group(1).decode(), match.group(2).decode(), output[:40], len(output), flush=True)
    running -= 1
    line.sendall(b"RICEVIS")
print("OK" if not line.recv(1) else "not closed", flush=True)
