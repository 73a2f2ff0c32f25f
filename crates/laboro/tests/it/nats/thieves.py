"""dwork clients that know two hubs, one of which leads, and keep books while hubs and servers are killed.

thieves.py HOST:PORT,HOST:PORT FILE creates, steals and completes until the file is there, then until all that was
created is done. Fails if something acknowledged is lost, or handed out after its completion was acknowledged.
"""

import json
import os
import sys
import threading
import time

import zmq

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../dwork"))
from client import parsed, query

# Longer than a steal waits at the hub.
PATIENCE_MS = 2500
END_S = 50

lock = threading.Lock()
created, completed, unclear, troubles = set(), set(), set(), []
# A task that is created once more when it is done is a new run: so it is in dwork.
repeated, renewed = set(), set()
# What happened to each task, for whoever looks for a cause.
history = {}


def note(name, *words):
    history.setdefault(name, []).append((round(time.time(), 2), *words))


class Client:
    """Asks again, at the other hub, until it is answered."""

    def __init__(self, addresses):
        self.addresses, self.at, self.socket, self.losses = addresses, 0, None, 0

    def ask(self, kind, tasks=(), **fields):
        """The answer, and whether the same was asked before without one."""
        again = False
        while True:
            if self.socket is None:
                self.socket = context.socket(zmq.REQ)
                self.socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
                self.socket.setsockopt(zmq.LINGER, 0)
                self.socket.connect("tcp://" + self.addresses[self.at])
            try:
                self.socket.send(query(kind, tasks, **fields))
                reply = parsed(self.socket.recv())
                # A hub that is being stopped has done nothing of it.
                if reply[0] != "Exit":
                    return (*reply[:2], again)
            except zmq.Again:
                pass
            self.socket.close()
            self.socket, self.at, self.losses = None, 1 - self.at, self.losses + 1
            again = True
            if kind == "Create":
                with lock:
                    repeated.update(tasks)


def is_over():
    return os.path.exists(enough)


def create(client):
    number = 0
    while not is_over():
        name = f"t{number}"
        number += 1
        kind, _, _ = client.ask("Create", [name])
        with lock:
            if kind == "OK":
                created.add(name)
            else:
                troubles.append(f"create {name}: {kind}")
        time.sleep(0.01)


def work(client, location):
    deadline = None
    while True:
        if is_over():
            deadline = deadline or time.monotonic() + END_S
            with lock:
                if created <= completed | unclear or time.monotonic() > deadline:
                    return
        kind, names, again = client.ask("Steal", location=location, n=2)
        if again:
            # An answer that was lost may have brought something: it goes back, and so does this.
            client.ask("Exit", location=location)
            continue
        if kind != "Transfer":
            continue
        with lock:
            for name in names:
                note(name, "stolen", location)
                if name in completed and name in repeated:
                    renewed.add(name)
                elif name in completed:
                    troubles.append(f"{name} was done and came again: {history[name]}")
                unclear.discard(name)
        for name in names:
            kind, _, again = client.ask("Complete", [name], location=location)
            with lock:
                note(name, "completed", location, kind, again)
                if kind == "OK":
                    completed.add(name)
                elif again and kind == "NotFound":
                    # The first one was heard and its answer lost; or an Exit that was late has given it back,
                    # and it comes again. Nobody has said that it is done.
                    unclear.add(name)
                else:
                    troubles.append(f"complete {name}: {kind}: {history[name]}")


addresses, enough = sys.argv[1].split(","), sys.argv[2]
context = zmq.Context()
clients = [Client(addresses) for _ in range(4)]
threads = [threading.Thread(target=create, args=(clients[0],))]
threads += [threading.Thread(target=work, args=(client, f"w{n}")) for n, client in enumerate(clients[1:])]
for thread in threads:
    thread.daemon = True
    thread.start()
for thread in threads:
    while thread.is_alive():
        thread.join(1)
lost = sorted(created - completed - unclear)
stolen = sum(event[1] == "stolen" for events in history.values() for event in events)
losses = sum(client.losses for client in clients)
print(json.dumps({"created": len(created), "completed": len(completed), "unclear": len(unclear - completed), "renewed": len(renewed), "stolen": stolen, "unanswered": losses}))
assert not troubles, troubles[:20]
assert not lost, f"{len(lost)} tasks are lost: {lost[:20]}"
assert len(created) > 20, len(created)
