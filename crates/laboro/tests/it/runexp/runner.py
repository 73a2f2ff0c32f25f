"""A runexp runner written for the tests, without a line of the programs under test: as careless as the original,
it takes one read of 1024 bytes for one message. Usage: runner.py PORT WORKERS HOST [GROUP [--take-only]]
With --take-only it leaves as soon as it was given a job, without a word."""
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

port, workers, host = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
group = sys.argv[4] if len(sys.argv) > 4 else "__defaulte__"
line = socket.create_connection(("127.0.0.1", port))
line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
talking = threading.Lock()
stop = threading.Event()


def ask(message):
    line.sendall(message)
    return line.recv(1024)


def expect(reply, wanted):
    if reply != wanted:
        sys.stderr.write(f"wanted {wanted}, heard {reply}\n")
        os._exit(1)


expect(ask(b"SALUTON; MI " + host.encode()), b"VERSIO 1.3")
if ask(b"KOMPRENAS") != b"ALIGI " + group.encode():
    sys.exit(4)
line.sendall(b"JES")
time.sleep(0.05)


def take():
    with talking:
        reply = ask(b"PETO")
        if reply in (b"FINO", b"ELIRI", b"ATENDI"):
            return reply, None, None
        match = re.fullmatch(rb"LABORO (.+) (\.\S+) (\d+)", reply, re.S)
        if not match:
            expect(reply, b"LABORO")
        name, size = match.group(1), int(match.group(3))
        line.sendall(b"PRETA")
        body = b""
        while len(body) < size:
            body += line.recv(size - len(body))
        if size == 0:
            time.sleep(0.03)
        return b"LABORO", name, body


def work():
    while not stop.is_set():
        word, name, body = take()
        if word == b"ATENDI":
            stop.wait(0.2)
            continue
        if word != b"LABORO":
            stop.set()
            return
        if "--take-only" in sys.argv:
            os._exit(0)
        with tempfile.NamedTemporaryFile(suffix=".sh") as script:
            script.write(body)
            script.flush()
            ran = subprocess.run(["bash", script.name], stdin=subprocess.DEVNULL, capture_output=True)
        marks = [mark for mark in ran.stdout.splitlines() if b"RES:" in mark]
        good = bool(marks) and not re.search(rb"RES:\s*failed", marks[-1], re.I)
        status = b"success" if good else b"failure"
        result = b"runexp summary: %s\n\nnow -- [%s] Running %s\n> bash\nnow -- Finished running\n" % (
            status, host.encode(), name)
        result += b"Program exited with status %d\nProgram output follows\n\n" % (ran.returncode << 8)
        result += ran.stdout
        with talking:
            expect(ask(b"REZULTO %s %s %d" % (name, status, len(result))), b"PRETA")
            expect(ask(result), b"RICEVIS")


threads = [threading.Thread(target=work) for _ in range(workers)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
line.sendall(b"FINO ANKAU")
line.close()
