"""A dwork hub as the original is, as far as a worker can tell: answers at once, keeps no leases, believes what it
is told, and says Exit when nothing is active.

original.py NAME,PRED,... ...   prints its address, then each request it gets as one JSON object
"""

import json
import sys

import zmq
from client import TYPE, NAMES, QueryMsg

tasks, order, stolen = {}, [], {}


def ready():
    return [name for name in order if name not in stolen and not tasks[name] & set(tasks)]


def answer(request):
    kind = NAMES[request.type]
    if kind == "Lookup":
        return QueryMsg(type=TYPE["Error"])
    if kind == "Steal":
        if not tasks:
            return QueryMsg(type=TYPE["Exit"])
        found = ready()[: request.n if request.HasField("n") else 1]
        reply = QueryMsg(type=TYPE["Transfer" if found else "NotFound"])
        for name in found:
            stolen[name] = request.location
            reply.task.add(name=name, origin="original").log.add(state=1, time=1)
        return reply
    for task in request.task:
        if kind == "Complete" and tasks.pop(task.name, None) is not None:
            order.remove(task.name)
        elif kind == "Transfer" and stolen.pop(task.name, None) is not None:
            order.remove(task.name)
            order.append(task.name)
    if kind == "Exit":
        for name in [name for name, location in stolen.items() if location == request.location]:
            del stolen[name]
    return QueryMsg(type=TYPE["OK"])


for line in sys.argv[1:]:
    name, *preds = line.split(",")
    tasks[name] = set(preds)
    order.append(name)
socket = zmq.Context.instance().socket(zmq.ROUTER)
print("127.0.0.1:%d" % socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
while True:
    *envelope, body = socket.recv_multipart()
    request = QueryMsg.FromString(body)
    told = [{"name": t.name, "origin": t.origin, "log": [l.state for l in t.log]} for t in request.task]
    told = {"type": NAMES[request.type], "n": request.n, "location": request.location, "tasks": told}
    print(json.dumps(told), flush=True)
    socket.send_multipart([*envelope, answer(request).SerializeToString()])
