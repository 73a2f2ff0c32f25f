"""The other side of the dwork tests: pyzmq sockets and Google's protocol buffers, nothing of ours.

client.py HOST:PORT CASE prints `good` when the hub behaves.
"""

import random
import resource
import socket
import sys
import threading
import time

import zmq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def messages():
    """The messages of dwork, as their .proto file would make them."""
    file = descriptor_pb2.FileDescriptorProto(name="dwork.proto", package="dwork", syntax="proto2")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {"string": field.TYPE_STRING, "int32": field.TYPE_INT32, "int64": field.TYPE_INT64}

    def enum(parent, name, values):
        made = parent.enum_type.add(name=name)
        for number, value in enumerate(values):
            made.value.add(name=value, number=number)

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for label, kind, title, number in fields:
            label = {"opt": field.LABEL_OPTIONAL, "req": field.LABEL_REQUIRED, "rep": field.LABEL_REPEATED}[label]
            new = made.field.add(name=title, number=number, label=label)
            if kind in kinds:
                new.type = kinds[kind]
            else:
                new.type = field.TYPE_ENUM if kind.startswith("enum ") else field.TYPE_MESSAGE
                new.type_name = ".dwork." + kind.removeprefix("enum ")
        return made

    enum(file, "State", "Pending Stolen Waiting Copying Ready Started Done Recorded".split())
    types = "Create Steal Complete Transfer Lookup NotFound OK Exit Error".split()
    enum(file, "Type", ["Q" + name for name in types])
    message("LogMsg", ("req", "enum State", "state", 1), ("req", "int64", "time", 2))
    message("Dep", ("req", "string", "name", 1), ("opt", "string", "location", 2))
    message(
        "TaskMsg",
        ("req", "string", "name", 1), ("req", "string", "origin", 2), ("rep", "Dep", "pred", 4),
        ("rep", "Dep", "succ", 5), ("rep", "LogMsg", "log", 6),
    )
    message(
        "QueryMsg",
        ("req", "enum Type", "type", 1), ("rep", "TaskMsg", "task", 2), ("opt", "string", "name", 3),
        ("opt", "int32", "n", 4), ("opt", "string", "location", 6),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("dwork.QueryMsg"))
    return made, {name: number for number, name in enumerate(types)}


QueryMsg, TYPE = messages()
NAMES = {number: name for name, number in TYPE.items()}


def query(kind, tasks=(), **fields):
    made = QueryMsg(type=TYPE[kind], **fields)
    for task in tasks:
        name, *preds = task if isinstance(task, tuple) else (task,)
        added = made.task.add(name=name, origin="python")
        for pred in preds:
            added.pred.add(name=pred)
    return made.SerializeToString()


def parsed(body):
    reply = QueryMsg.FromString(body)
    return NAMES[reply.type], [task.name for task in reply.task], reply


class Req:
    def __init__(self, context, address):
        self.socket = context.socket(zmq.REQ)
        self.socket.setsockopt(zmq.RCVTIMEO, 30_000)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect("tcp://" + address)

    def ask(self, kind, tasks=(), **fields):
        self.socket.send(query(kind, tasks, **fields))
        return parsed(self.socket.recv())

    def close(self):
        self.socket.close()


def lockstep(context, address):
    req = Req(context, address)
    assert req.ask("Create", ["a", ("b", "a")])[0] == "OK"
    kind, names, reply = req.ask("Steal", location="w", n=5)
    assert (kind, names) == ("Transfer", ["a"]), (kind, names)
    assert reply.task[0].origin == "python" and reply.task[0].log[0].state == 1
    assert req.ask("Lookup", name="a")[2].location == "w"
    assert req.ask("Complete", ["a", "unknown"], location="w")[:2] == ("NotFound", ["unknown"])
    assert req.ask("Steal", location="w")[:2] == ("Transfer", ["b"])
    assert req.ask("Transfer", [("b", "late")], location="w")[0] == "OK"
    assert req.ask("Steal", location="w")[:2] == ("Transfer", ["b"])
    _, _, status = req.ask("OK")
    assert (status.name, status.n) == ("dhub: 1 active tasks, 0 ready.", 0), status
    assert req.ask("Exit", location="w")[0] == "OK"
    assert req.ask("Exit", location="w")[0] == "NotFound"
    assert req.ask("Create")[0] == "Error"
    assert req.ask("Steal", location="w")[:2] == ("Transfer", ["b"])
    assert req.ask("Complete", ["b"], location="w")[0] == "OK"
    assert req.ask("Steal", location="w")[0] == "Exit"
    big = [f"task number {number}" for number in range(20_000)]
    assert req.ask("Create", big)[0] == "OK"
    assert req.ask("Steal", location="w", n=50_000)[1] == big


def pipeline(context, address):
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.RCVTIMEO, 30_000)
    dealer.setsockopt(zmq.LINGER, 0)
    # A client may send far more than it has read; the hub must neither lose nor swap anything.
    dealer.setsockopt(zmq.SNDHWM, 0)
    dealer.setsockopt(zmq.RCVHWM, 0)
    dealer.connect("tcp://" + address)
    count = 20_000
    for number in range(count):
        dealer.send_multipart([str(number).encode(), b"", query("Create", [f"t{number}"])])
    dealer.send_multipart([b"no delimiter"])
    dealer.send_multipart([b"two", b"", query("OK"), b"bodies"])
    for number in range(count):
        envelope, empty, body = dealer.recv_multipart()
        assert (envelope, empty) == (str(number).encode(), b""), (number, envelope)
        assert parsed(body)[0] == "OK"
    envelope, _, body = dealer.recv_multipart()
    assert (envelope, parsed(body)[0]) == (b"two", "Error")
    dealer.send_multipart([b"", query("Steal", location="w", n=count)])
    assert parsed(dealer.recv_multipart()[1])[1] == [f"t{number}" for number in range(count)]
    # A steal that would wait is answered as soon as something else is asked.
    dealer.send_multipart([b"1", b"", query("Steal", location="w")])
    dealer.send_multipart([b"2", b"", query("Complete", ["t0"], location="w")])
    answers = [dealer.recv_multipart() for _ in range(2)]
    assert [(a[0], parsed(a[2])[0]) for a in answers] == [(b"1", "NotFound"), (b"2", "OK")], answers
    dealer.close()


def workers(context, address):
    """A graph of layers; each worker completes what it steals, in its own time."""
    req, layers, width = Req(context, address), 20, 25
    for layer in range(layers):
        preds = [f"{layer - 1}.{at}" for at in range(width)] if layer else []
        assert req.ask("Create", [(f"l{layer}-{at}", *(f"l{p.replace('.', '-')}" for p in preds)) for at in range(width)])[0] == "OK"
    done, lock = [], threading.Lock()

    def work(name):
        mine = Req(context, address)
        while True:
            kind, names, _ = mine.ask("Steal", location=name, n=random.randint(1, 5))
            if kind == "Exit":
                break
            if kind == "NotFound":
                continue
            assert kind == "Transfer", kind
            with lock:
                done.extend(names)
            assert mine.ask("Complete", names, location=name)[0] == "OK"
        mine.close()

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(done) == len(set(done)) == layers * width, len(done)
    # Taken means that all before it were complete.
    seen = [int(name[1:].split("-")[0]) for name in done]
    assert seen == sorted(seen)


def restless(context, address):
    """Steals whose sockets are closed while they wait take no task with them."""
    req = Req(context, address)
    for round_number in range(20):
        thieves = [Req(context, address) for _ in range(5)]
        for number, thief in enumerate(thieves):
            thief.socket.send(query("Steal", location=f"thief{number}"))
        req.ask("OK")
        for thief in thieves:
            thief.close()
        # Whoever was still being closed may have got the task; it is found or can be stolen.
        name = f"t{round_number}"
        assert req.ask("Create", [name])[0] == "OK"
        for _ in range(2 * len(thieves)):
            if req.ask("Steal", location="w")[1] == [name]:
                break
            kind, _, reply = req.ask("Lookup", name=name)
            if kind != "NotFound":
                req.ask("Exit", location=reply.location)
        else:
            raise AssertionError(f"{name} is lost")
        assert req.ask("Complete", [name], location="w")[0] == "OK"


def crowd(context, address):
    """A thousand clients at once, each with a task and a location of its own."""
    count = 1000
    context.max_sockets = count + 10
    clients = [Req(context, address) for _ in range(count)]

    def all_ask(kind, request):
        for number, client in enumerate(clients):
            client.socket.send(request(number))
        answers = [parsed(client.socket.recv()) for client in clients]
        assert all(answer[0] == kind for answer in answers), {answer[0] for answer in answers}
        return [names for _, names, _ in answers]

    all_ask("OK", lambda number: query("Create", [f"t{number}"]))
    stolen = all_ask("Transfer", lambda number: query("Steal", location=f"w{number}"))
    assert sorted(name for names in stolen for name in names) == sorted(f"t{n}" for n in range(count))
    all_ask("OK", lambda number: query("Complete", stolen[number], location=f"w{number}"))
    assert clients[0].ask("OK")[2].name == "dhub: 0 active tasks, 0 ready."


def half_open(context, address):
    """A thousand connections that never finish their handshake keep nobody waiting."""
    host, port = address.split(":")
    greeting = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL"
    half = []
    for number in range(1000):
        half.append(socket.create_connection((host, int(port))))
        half[-1].sendall(greeting[: number % (len(greeting) + 1)])
    req, began = Req(context, address), time.monotonic()
    assert req.ask("Create", ["a"])[0] == "OK"
    assert req.ask("Steal", location="w")[1] == ["a"]
    assert req.ask("Complete", ["a"], location="w")[0] == "OK"
    took = time.monotonic() - began
    assert took < 2, f"{took} s"
    assert all(connection.fileno() >= 0 for connection in half)


def twins(context, address):
    """Two sockets with the same name are two clients."""
    dealers = []
    for _ in range(2):
        dealers.append(context.socket(zmq.DEALER))
        dealers[-1].identity = b"twin"
        dealers[-1].rcvtimeo = 30_000
        dealers[-1].connect("tcp://" + address)
    for number in range(100):
        for name, dealer in enumerate(dealers):
            dealer.send_multipart([b"%d" % number, b"", query("Create", [f"t{name}-{number}"])])
    for number in range(100):
        for dealer in dealers:
            envelope, _, body = dealer.recv_multipart()
            assert (envelope, parsed(body)[0]) == (b"%d" % number, "OK")
    req = Req(context, address)
    assert req.ask("OK")[2].n == 200


def bare(context, address):
    """What is no request does harm to nobody: no delimiter, no body, two bodies, envelopes of many frames."""
    dealer = context.socket(zmq.DEALER)
    dealer.rcvtimeo = 30_000
    dealer.connect("tcp://" + address)
    dealer.send_multipart([b"no delimiter"])
    dealer.send_multipart([b"x", b""])
    assert parsed(dealer.recv_multipart()[2])[0] == "Error"
    dealer.send_multipart([b"", b""])
    assert parsed(dealer.recv_multipart()[1])[0] == "Error"
    dealer.send_multipart([b"", query("OK"), query("OK")])
    assert parsed(dealer.recv_multipart()[1])[0] == "Error"
    many = [b"%d" % number for number in range(20)]
    dealer.send_multipart([*many, b"", query("OK")])
    answer = dealer.recv_multipart()
    assert answer[:21] == [*many, b""] and parsed(answer[21])[0] == "OK"


CASES = (lockstep, pipeline, workers, restless, crowd, half_open, twins, bare)

if __name__ == "__main__":
    address, case = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with zmq.Context() as context:
        {made.__name__: made for made in CASES}[case](context, address)
        context.destroy(linger=0)
    print("good")
