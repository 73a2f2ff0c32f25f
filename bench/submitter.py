"""One hostile submitter for `bench/faults submitters`: random bodies of every shape, half of them never sent to their
end, for as long as it is told. Its token comes on standard input; it prints how often it was answered how, as JSON.

    submitter.py HOST PORT SECONDS SEED
"""

import json
import random
import socket
import ssl
import sys
import time


def main():
    host, port, seconds, seed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    secret = sys.stdin.readline().strip()
    dice = random.Random(seed)
    end = time.monotonic() + seconds
    answers = {}
    held = []
    while time.monotonic() < end:
        path, body = shape(dice)
        share = dice.choice([0.5, 0.99, 1, 1])
        try:
            status = send(host, port, secret, path, body, share, held)
        except OSError as error:
            status = type(error).__name__
        answers[status] = answers.get(status, 0) + 1
        # Half-sent bodies are left open for a while.
        while len(held) > 8:
            held.pop(0).close()
    print(json.dumps(answers))


def send(host, port, secret, path, body, share, held):
    context = ssl._create_unverified_context()
    plain = socket.create_connection((host, port), timeout=20)
    stream = context.wrap_socket(plain)
    head = f"POST /api/v1/{path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {secret}\r\n"
    head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    stream.sendall(head.encode() + body[: int(len(body) * share)])
    if share < 1:
        held.append(stream)
        return "half sent"
    answer = stream.recv(64)
    stream.close()
    return answer.split(b" ")[1].decode() if b" " in answer else "closed"


def shape(dice):
    path, body = dice.choice(list(shapes(dice, int(2 ** dice.uniform(8, 24))).values()))()
    body = body.encode()
    if dice.random() < 0.1 and body:
        # Somewhere in it is a byte that does not belong there.
        at = dice.randrange(len(body))
        body = body[:at] + bytes([dice.randrange(256)]) + body[at + 1 :]
    return path, body


def shapes(dice, size):
    """What makes a body of about this size, by what it has too many of."""
    name = f"t{dice.randrange(10**9)}"

    def many(item, between=","):
        return between.join([item] * (size // (len(item) + 1)))

    def one(field):
        return '{"tasks":[{"name":"%s",%s}]}' % (name, field)

    def own(make):
        count = size // len(make(10**6))
        return '{"tasks":[%s]}' % ",".join(make(dice.randrange(10**9)) for _ in range(count))

    return {
        "empty tasks": lambda: ("jobs", '{"tasks":[%s]}' % many("{}")),
        "tasks": lambda: ("jobs", '{"tasks":[%s]}' % many('{"command":""}')),
        "names": lambda: ("jobs", own(lambda n: '{"name":"n%d"}' % n)),
        "settings": lambda: ("jobs", own(lambda n: '{"command":"a","env":{"A":"%d"}}' % n)),
        "priorities": lambda: ("jobs", own(lambda n: '{"command":"a","priority":%d}' % (n % 10**6))),
        "values": lambda: ("jobs", one('"values":[%s]' % many('""'))),
        "words": lambda: ("jobs", one('"command":[%s]' % many('""'))),
        "predecessors": lambda: ("jobs", one('"after":[%s]' % many('"a"'))),
        "tags": lambda: ("jobs", one('"tags":[%s]' % many('"a"'))),
        "script": lambda: ("jobs", one('"script":{"kind":".sh","body":"%s"}' % ("x" * size))),
        "brackets": lambda: ("jobs", '{"tasks":%s' % ("[" * size)),
        "blanks": lambda: ("jobs", " " * size),
        "lines": lambda: ("jobs/stream", "{}\n" + many('{"command":"a"}', "\n")),
        "values of a line": lambda: ("jobs/stream", '{}\n{"command":"a","values":[%s]}\n' % many('"b"')),
        "a line": lambda: ("jobs/stream", "{}\n" + "x" * size),
        "numbers": lambda: ("jobs/1/cancel", '{"tasks":"%s"}' % many("1")),
    }


if __name__ == "__main__":
    main()
