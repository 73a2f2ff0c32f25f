"""A foreman is tried by nodes and clients like fuq's own. Says `good` when everything was as it should."""

import http.client
import json
import socket
import ssl
import struct
import sys
import threading
import time

from websockets.exceptions import ConnectionClosed

from peer import *

address, authority, password, case = sys.argv[1:5]
more = sys.argv[5:]


def client():
    return Client(address, authority, password)


def node(slots=2, **more):
    return Node(address, authority, password, slots, **more)


def until(what, ready):
    for _ in range(3000):
        found = ready()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"never: {what}")


def persistent():
    """The conversation of the golden data, but for one task a JOB."""
    cli, one = client(), node(tags=["blue"])
    assert one.name == "vm:7:1", one.name
    one.hello()
    job = cli.queue("two", 2, log="/logs")
    first, second = one.take_job(), one.take_job()
    about = {"JobId": job, "Name": "two", "NumTasks": 2, "WorkingDir": "/tmp"}
    about |= {"LoggingDir": "/logs", "Command": "/bin/true", "Status": 1}
    assert list(first.items()) == [("Task", 1), ("JobDescription", about)], first
    assert list(first["JobDescription"]) == list(about)
    assert second == {"Task": 2, "JobDescription": about}
    listed = cli.jobs()[job]
    assert listed["Description"]["status"] == "running" and listed["TasksRunning"] == [1, 2]
    one.end(second)
    one.end(first, False, "error encountered: exit status 1")
    assert cli.jobs() == {}
    listed = cli.jobs("finished")[job]
    assert listed["TasksFinished"] == 1 and listed["TasksWithErrors"] == [1], listed
    assert list(listed) == [
        "Description", "TasksFinished", "TasksPending", "TasksRunning", "TasksWithErrors",
    ]

    job = cli.queue("slow", 2)
    tasks = [one.take_job(), one.take_job()]
    change = {"job_id": job, "prev_status": "running", "new_status": "cancelled"}
    assert cli.ask("job/state", {"job_ids": [job], "Action": "cancel"}) == [change]
    kind, _, seq, _, pairs = one.hear()
    assert kind == CANCEL and sorted(pair["Task"] for pair in pairs) == [1, 2], pairs
    assert all(pair["JobId"] == job for pair in pairs)
    one.ok(seq, 2, 0)
    for task in tasks:
        one.end(task, False, "error encountered: signal: killed")
    assert job in cli.jobs("cancelled"), "it stays cancelled, whatever its tasks reported"

    listed = cli.ask("nodes/list", {"cookie_list": False, "job_list": False})
    expected = {"node": "vm", "pid": 7, "session": "", "unique_name": "vm:7:1"}
    assert listed == [expected | {"tags": ["blue"], "nproc": 2}], listed
    assert cli.ask("nodes/shutdown", {"uniq_names": ["vm:7:1"]}) == {}
    kind, _, seq, arg0, _ = one.hear()
    assert (kind, arg0) == (STOP, 2)
    one.ok(seq, 0, 0)
    one.socket.close(1000, "closing")
    until("it is gone", lambda: cli.ask("nodes/list", {}) == [])
    again = Node(address, authority, password, welcome=one.welcome)
    again.hello()
    assert again.hear()[0] == STOP, "it was told to leave, and is told again"


def race():
    """JOB overtakes the node's own bookkeeping: the task goes back and is sent again."""
    cli, one = client(), node(slots=1)
    one.hello()
    job = cli.queue("race", 3)
    for _ in range(3):
        kind, _, seq, _, tasks = one.hear()
        assert kind == JOB
        one.socket.send(message(ERROR, seq, counts(0, 1), subtype=NO_PROCS))
        one.end(one.take_job())
    assert cli.jobs("finished")[job]["TasksFinished"] == 3
    cli.ask("nodes/shutdown", {"uniq_names": [one.name]})
    for _ in range(2):
        kind, _, seq, arg0, _ = one.hear()
        assert (kind, arg0) == (STOP, 1), (kind, arg0)
        one.socket.send(message(ERROR, seq, counts(1, 0), subtype=NO_PROCS))


def polling():
    """Each slot asks for itself, and an update asks for the next task."""
    cli, web = client(), Web(address, authority)
    welcome = log_in(web, password, 2)
    cookie, results, ended = welcome["Cookie"], [], []

    def slot():
        mine = Web(address, authority)
        tasks = mine.good("job/request", {"nproc": 1}, cookie)
        while tasks[0]["task"] > 0:
            assert len(tasks) == 1
            results.append(tasks[0])
            update = {"job_id": tasks[0]["job_id"], "task": tasks[0]["task"], "success": True}
            update |= {"status": "done", "newjob": {"nproc": 1}}
            tasks = mine.good("job/update", update, cookie)
        stop = {"task": -1, "job_id": 0, "name": "::stop::"}
        ended.append(stop.items() <= tasks[0].items())

    slots = [threading.Thread(target=slot) for _ in range(2)]
    for thread in slots:
        thread.start()
    job = cli.queue("poll", 20, log="/logs")
    until("all is done", lambda: job in cli.jobs("finished"))
    assert sorted(task["task"] for task in results) == list(range(1, 21))
    about = {"job_id": job, "name": "poll", "num_tasks": 20, "working_dir": "/tmp"}
    about |= {"logging_dir": "/logs", "command": "/bin/true", "status": "running"}
    assert about.items() <= results[0].items() and list(results[0])[0] == "task", results[0]
    assert [node["unique_name"] for node in cli.ask("nodes/list", {})] == [welcome["Name"]]
    cli.ask("nodes/shutdown", {"uniq_names": [welcome["Name"]]})
    for thread in slots:
        thread.join()
    assert ended == [True, True]

    # Without `newjob` nothing is given; older nodes have an envelope and another path.
    other = log_in(web, password, 1)["Cookie"]
    job = cli.queue("old", 2)
    task = web.good("job/request", {"cookie": other, "msg": {"nproc": 1}})[0]
    update = {"JOB_ID": job, "Task": task["task"], "Success": False, "Status": "no luck"}
    assert web.good("job/status", {"cookie": other, "msg": update}) == []
    task = web.good("job/request", {}, other)[0]
    update = {"job_id": job, "task": task["task"], "success": True, "status": "done"}
    assert web.good("job/update", update | {"newjob": None}, other) == []
    assert cli.jobs("finished")[job]["TasksWithErrors"] == [1]
    assert web.ask("job/update", update | {"job_id": 999}, other)[0] == 400
    # A node that is cut off while it waits leaves nothing behind.
    waiting = Web(address, authority)
    body = b'{"nproc":1}'
    head = f"POST /job/request HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    raw = waiting.context.wrap_socket(socket.create_connection(address.rsplit(":", 1)))
    raw.sendall(head.encode() + f"Cookie: fuq_foreman_auth={other}\r\n\r\n".encode() + body)
    raw.close()
    job = cli.queue("next", 1)
    task = web.good("job/request", {"nproc": 1}, other)[0]
    assert task["job_id"] == job


def lock_out():
    """Who may not come in, and what is said to them."""
    web, cli = Web(address, authority), client()
    hello = {"auth": "wrong", "node": "vm", "pid": 1, "session": "", "nproc": 1}
    status, text, headers = web.ask("hello", hello)
    assert (status, text) == (403, "403 access forbidden\n") and "Set-Cookie" not in headers
    wrong = Client(address, authority, "wrong")
    for path in ["job/new", "job/list", "job/state", "job/clear", "nodes/list", "shutdown"]:
        assert wrong.status(path, {}) == 403, path
    assert web.ask("client/job/list", {"msg": {}})[0] == 403
    for path in ["job/request", "job/update"]:
        assert web.ask(path, {"nproc": 1})[0] == 401
        assert web.ask(path, {"nproc": 1}, "A" * 22)[0] == 403
        assert web.ask(path, {"nproc": 1}, "A" * 200)[0] == 401
    for cookie, expected in [(None, 401), ("A" * 22, 403)]:
        status = web.ask("node/persistent", "", cookie, "GET")[0]
        assert status == expected, (cookie, status)
    for body in ["", "{", "[]", '["a"]', '{"auth": 3}', b"\xff\xfe"]:
        assert web.ask("hello", body)[0] == 400, body
    for wrong in [{"nproc": "2"}, {"nproc": -1}, {"node": 3}, {"node": ""}, {"tags": "blue"}]:
        hello = {"auth": password, "node": "vm", "pid": 1, "nproc": 1} | wrong
        assert web.ask("hello", hello)[0] == 400, wrong
    assert web.ask("hello", "{}", method="GET")[0] == 405
    assert web.ask("nowhere", "{}")[0] == 404
    good = log_in(web, password)
    assert web.ask("node/persistent", "{}", good["Cookie"])[0] == 405
    assert web.ask("node/persistent", "", good["Cookie"], "GET")[0] == 400, "no upgrade"
    assert web.ask("client/nodes/list", cli.envelope(None))[0] == 200


def clients():
    """Everything that the command line can ask."""
    cli = client()
    assert cli.jobs() == {} and cli.ask("nodes/list", {}) == []
    first, second = cli.queue("same", 3), cli.queue("same", 1)
    assert sorted(cli.jobs()) == [first, second] == sorted(cli.jobs("waiting", "same"))
    assert cli.jobs(name="other") == {} == cli.jobs("running")
    about = cli.jobs()[first]["Description"]
    assert list(about.values()) == [first, "same", 3, "/tmp", "/tmp", "/bin/true", "waiting"]
    hold = {"JOB_IDS": [second, first], "action": "hold"}
    answer = [
        {"job_id": job, "prev_status": "waiting", "new_status": "paused"} for job in [second, first]
    ]
    assert cli.ask("job/state", hold) == answer
    assert sorted(cli.jobs("paused")) == [first, second]
    one = node()
    one.hello()
    release = {"job_ids": [second], "Action": "release"}
    answer = {"job_id": second, "prev_status": "paused", "new_status": "waiting"}
    assert cli.ask("job/state", release) == [answer]
    one.end(one.take_job())
    for said in [
        {"job_ids": [], "Action": "hold"},
        {"job_ids": [first, 999], "Action": "cancel"},
        {"job_ids": [1 << 63], "Action": "cancel"},
        {"job_ids": [first], "Action": "explode"},
        {"job_ids": "1", "Action": "hold"},
    ]:
        assert cli.status("job/state", said) == 400, said
    assert cli.jobs("paused").keys() == {first}, "nothing was changed"
    good = {"name": "n", "num_tasks": 1, "working_dir": "/", "logging_dir": "/", "command": "/x"}
    for wrong in [
        {"num_tasks": 0}, {"num_tasks": -1}, {"num_tasks": 1.5}, {"num_tasks": 1 << 40},
        {"status": "running"}, {"status": "odd"}, {"command": ""}, {"name": "../x"}, {"name": 3},
    ]:
        assert cli.status("job/new", good | wrong) == 400, wrong
    assert cli.ask("job/clear") == {}
    assert cli.jobs() == {} == cli.jobs("paused") == cli.jobs("finished")
    over = {"job_ids": [cli.queue("late", 1)], "Action": "cancel"}
    assert cli.ask("job/state", over)[0]["new_status"] == "cancelled"
    assert cli.ask("job/state", over)[0]["prev_status"] == "cancelled"
    over["Action"] = "release"
    assert cli.ask("job/state", over)[0]["new_status"] == "cancelled", "it is over"
    assert cli.ask("shutdown") == {}


def faults():
    """What ends the original's foreman ends one connection here at most, and nobody else notices."""
    cli, good = client(), node(slots=1, host="good")
    good.hello()
    hello = {"NumProcs": 1, "Running": []}

    def closed(peer, *frames):
        peer.socket.send(*frames)
        try:
            while True:
                peer.socket.recv(timeout=30)
        except ConnectionClosed:
            pass

    # A second HELLO, at once and later.
    twice = node(slots=1)
    twice.hello()
    twice.hello()
    twice.cut()
    closed(node(), message(HELLO, 0, body=hello), message(HELLO, 2, body=hello))
    # An UPDATE with nothing running, before and after the HELLO, and one without a body.
    idle = node(slots=1)
    update = {"JobId": 1, "Task": 1, "Success": True, "Status": "done", "NewJob": None}
    idle.say(UPDATE, update)
    idle.expect_ok(0xFFFFFFFF)
    idle.hello()
    idle.say(UPDATE, update)
    idle.expect_ok(counts(1, 0))
    idle.socket.send(message(UPDATE, idle.seq // 2 * 2 + 2))
    assert idle.hear()[0] == OK
    idle.cut()
    # A HELLO without a body runs nothing and does not say what it has.
    bare = node()
    bare.socket.send(message(HELLO, 0))
    assert bare.hear()[3] == 0
    bare.cut()
    # Two requests at once.
    two = node(slots=1)
    two.hello()
    two.socket.send(message(UPDATE, 2, body=update), message(UPDATE, 4, body=update))
    assert [two.hear()[2], two.hear()[2]] == [2, 4]
    two.cut()
    # More than is taken, announced in every place where that can be said.
    closed(node(), struct.pack("<HBBIII", 0xC047, HELLO, 0, 0, 0, 0xFFFFFFFF))
    closed(node(), message(HELLO, 0, body=hello)[:-3])
    closed(node(), "text")
    closed(node(), b"\x48\xc0" + message(OK, 0)[2:])
    closed(node(), message(6, 0))
    huge = node()
    huge.socket.socket.sendall(b"\x82\xff" + struct.pack(">Q", 1 << 32) + b"mask")
    closed(huge)
    web = Web(address, authority)
    for path, cookie in [("hello", None), ("client/job/new", None), ("job/update", "A" * 22)]:
        raw = web.context.wrap_socket(socket.create_connection(address.rsplit(":", 1)))
        head = f"POST /{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 32}\r\n\r\n"
        raw.sendall(head.encode() + b"{")
        answer = b""
        while piece := raw.recv(4096):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 413 "), answer
    raw = web.context.wrap_socket(socket.create_connection(address.rsplit(":", 1)))
    raw.sendall(b"\x00\x01rubbish\r\n\r\n")
    while raw.recv(4096):
        pass
    # Whoever does not speak TLS at all.
    plain = socket.create_connection(address.rsplit(":", 1))
    plain.sendall(message(HELLO, 0, body=hello))
    while True:
        try:
            if not plain.recv(4096):
                break
        except ConnectionResetError:
            break
    job = cli.queue("after", 1)
    task = good.take_job()
    assert task["JobDescription"]["JobId"] == job
    good.end(task)


def stale():
    """A login runs out; the node renews it and keeps its name."""
    web = Web(address, authority)
    welcome = log_in(web, password)
    until("it has run out", lambda: web.ask("node/persistent", "", welcome["Cookie"], "GET")[0] == 403)
    hello = {"auth": password, "node": "vm", "pid": 7, "unique_name": welcome["Name"], "nproc": 2}
    said = {"cookie": welcome["Cookie"], "msg": hello}
    for wrong in [{"auth": "wrong"}, {"node": "other"}, {"unique_name": "vm:7:2"}]:
        assert web.ask("node/reauth", said | {"msg": hello | wrong})[0] == 403, wrong
    assert web.ask("node/reauth", said | {"cookie": "A" * 22})[0] == 403
    assert web.ask("node/reauth", [1])[0] == 400
    renewed = web.good("node/reauth", said)
    assert list(renewed) == ["Name", "Cookie"] and renewed["Name"] == welcome["Name"]
    assert renewed["Cookie"] != welcome["Cookie"]
    assert web.ask("node/persistent", "", renewed["Cookie"], "GET")[0] == 400, "it is good"
    assert web.ask("node/reauth", said)[0] == 403, "the old one is gone"


def late():
    """A result that comes with an old cookie counts, if the node holds the task. For more it renews the cookie."""
    cli, web = client(), Web(address, authority)
    welcome = log_in(web, password, 1)
    cookie, job = welcome["Cookie"], cli.queue("work", 2)
    task = web.good("job/request", {"nproc": 1}, cookie)[0]
    until("it is old", lambda: web.ask("node/persistent", "", cookie, "GET")[0] == 403)
    update = {"job_id": job, "task": task["task"], "success": True, "status": "done"}
    for wrong in [{"task": 2}, {"job_id": 999}]:
        assert web.ask("job/update", update | wrong, cookie)[0] == 403, wrong
    assert web.good("job/update", update | {"newjob": {"nproc": 1}}, cookie) == []
    assert cli.jobs()[job]["TasksFinished"] == 1
    assert web.ask("job/update", update, cookie)[0] == 403, "it holds nothing any more"
    assert web.ask("job/request", {"nproc": 1}, cookie)[0] == 403
    hello = {"auth": password, "node": "vm", "pid": 7, "unique_name": welcome["Name"], "nproc": 1}
    renewed = web.good("node/reauth", {"cookie": cookie, "msg": hello})["Cookie"]
    assert web.good("job/request", {"nproc": 1}, renewed)[0]["task"] == 2


def gone():
    """A node that polls is killed while all of it works. When it should have reported, its task goes to others."""
    cli, job = client(), client().queue("work", 3)
    dies, lives = Web(address, authority), Web(address, authority)
    cookie = log_in(dies, password, 1)["Cookie"]
    assert dies.good("job/request", {"nproc": 1}, cookie)[0]["task"] == 1
    dies.close()
    # And one with two slots, of which one is free and does not ask.
    cookie = log_in(lives, password, 1)["Cookie"]
    tasks, ran = lives.good("job/request", {"nproc": 1}, cookie), []
    while len(ran) < 3:
        ran.append(tasks[0]["task"])
        update = {"job_id": job, "task": ran[-1], "success": True, "status": "done"}
        more = {"newjob": {"nproc": 1}} if len(ran) < 3 else {}
        tasks = lives.good("job/update", update | more, cookie)
    assert ran == [2, 3, 1], ran
    assert cli.jobs("finished")[job]["TasksFinished"] == 3


def half():
    """The same of a node with a free slot, for which it does not ask; nothing is known of how long tasks take."""
    job, dies = client().queue("work", 1), Web(address, authority)
    cookie = log_in(dies, password, 2)["Cookie"]
    assert dies.good("job/request", {"nproc": 1}, cookie)[0]["task"] == 1
    dies.close()
    other = node(slots=1)
    other.hello()
    other.end(other.take_job())
    assert job in client().jobs("finished")


def last():
    """A node that polls is told to leave when nothing runs there: it would end what does."""
    cli, busy, free = client(), Web(address, authority), Web(address, authority)
    welcome = log_in(busy, password, 2)
    cookie, job = welcome["Cookie"], cli.queue("work", 1)
    task = busy.good("job/request", {"nproc": 1}, cookie)[0]
    heard = []
    thread = threading.Thread(
        target=lambda: heard.append(free.good("job/request", {"nproc": 1}, cookie))
    )
    thread.start()
    cli.ask("nodes/shutdown", {"uniq_names": [welcome["Name"]]})
    thread.join(1.5)
    assert thread.is_alive() and not heard, heard
    update = {"job_id": job, "task": task["task"], "success": True, "status": "done"}
    answer = busy.good("job/update", update | {"newjob": {"nproc": 1}}, cookie)
    assert answer[0]["name"] == "::stop::", answer
    thread.join()
    assert heard[0][0]["name"] == "::stop::", heard
    assert cli.jobs("finished")[job]["TasksFinished"] == 1


def guesses():
    """Many different wrong passwords have to wait, and the right one has not."""
    web, heard = Web(address, authority), []
    hello = {"node": "vm", "pid": 1, "session": "", "nproc": 1}
    for number in range(40):
        status, _, headers = web.ask("hello", hello | {"auth": f"guess {number}"})
        heard.append(status)
    assert heard == [403] * 10 + [429] * 30, heard
    assert 0 < int(headers["Retry-After"]) <= 60
    assert Client(address, authority, "another").status("job/list", {}) == 429
    log_in(web, password)
    assert client().jobs() == {}


def crowd():
    """Nodes of both kinds work on a job of trivial tasks until it is over, whatever becomes of the hub."""
    job, tasks = int(more[0]), int(more[1])
    nodes = [Stubborn(address, authority, password, 2, f"ws{n}") for n in range(2)]
    nodes += [Poller(address, authority, password, 2, f"poll{n}") for n in range(2)]
    for one in nodes:
        one.start()
    part, found = 0, None
    while not (found and found["Description"]["status"] == "finished"):
        for one in nodes:
            one.check()
        try:
            cli = client()
            found = (cli.jobs() | cli.jobs("finished"))[job]
        except (OSError, KeyError, http.client.HTTPException):
            # The hub is gone for a moment, or the job ended between the two questions.
            pass
        else:
            for part in range(part + 1, 8 * found["TasksFinished"] // tasks + 1):
                print("part", part, flush=True)
        time.sleep(0.02)
    assert (found["TasksFinished"], found["TasksWithErrors"]) == (tasks, []), found


def dead():
    """What a node ran that does not come back is run by another; one that does come back keeps it."""
    cli, one = client(), node(slots=1)
    one.hello()
    job = cli.queue("work", 1)
    task = one.take_job()
    one.cut()
    back = Node(address, authority, password, 1, [task], one.welcome)
    back.hello()
    back.end(task)
    assert job in cli.jobs("finished")
    job = cli.queue("work", 1)
    back.take_job()
    back.cut()
    other = node(slots=1, host="other")
    other.hello()
    task = other.take_job()
    assert task["JobDescription"]["JobId"] == job
    other.end(task)
    # The same with a node that polls, if a slot of it asked for more: who lives would ask again.
    web, free = Web(address, authority), Web(address, authority)
    cookie = log_in(web, password, 2)["Cookie"]
    other.cut()
    job = cli.queue("poll", 2)
    tasks = [one.good("job/request", {"nproc": 1}, cookie)[0] for one in (web, free)]
    update = {"job_id": job, "task": tasks[1]["task"], "success": True, "status": "done"}
    free.begin("job/update", update | {"newjob": {"nproc": 1}}, cookie)
    until("it asks for more", lambda: cli.jobs()[job]["TasksFinished"] == 1)
    free.break_off()
    web.close()
    last = node(slots=1, host="last")
    last.hello()
    task = last.take_job()
    assert task["JobDescription"]["JobId"] == job
    last.end(task)


def silent():
    """A node that polls closes its connection while all of it works, and its task stays its own."""
    cli, web = client(), Web(address, authority)
    cookie = log_in(web, password, 1)["Cookie"]
    job = cli.queue("long", 1)
    brief = {"Connection": "close"}
    assert web.ask("job/request", {"nproc": 1}, cookie, headers=brief)[0] == 200
    other = node(slots=1, host="other")
    other.hello()
    try:
        raise AssertionError(other.hear(timeout=float(more[0])))
    except TimeoutError:
        pass
    web = Web(address, authority)
    update = {"job_id": job, "task": 1, "success": True, "status": "done"}
    assert web.good("job/update", update, cookie) == []
    assert cli.jobs("finished")[job]["TasksFinished"] == 1


def unheard():
    """An answer is lost with its connection: what was in it is given again to the node, which asks anew."""
    cli, web = client(), Web(address, authority)
    cookie = log_in(web, password, 1)["Cookie"]
    lost = Web(address, authority)
    lost.begin("job/request", {"nproc": 1}, cookie)
    job = cli.queue("work", 1)
    until("it was sent", lambda: cli.jobs()[job]["TasksRunning"] == [1])
    lost.close()
    task = web.good("job/request", {"nproc": 1}, cookie)[0]
    assert task["job_id"] == job, task
    update = {"job_id": job, "task": 1, "success": True, "status": "done"}
    assert web.good("job/update", update, cookie) == []
    assert cli.jobs("finished")[job]["TasksFinished"] == 1


def remember():
    """Before a restart of the hub: logs in, takes a task, says who it is."""
    one = node(slots=1)
    one.hello()
    client().queue("long", 1)
    task = one.take_job()
    print(json.dumps({"welcome": one.welcome, "task": task}))
    sys.exit()


def recall():
    """After it: the cookie is good, and the task still its own."""
    before = json.loads(more[0])
    one = Node(address, authority, password, 1, [before["task"]], before["welcome"])
    one.hello()
    one.end(before["task"])
    job = before["task"]["JobDescription"]["JobId"]
    assert client().jobs("finished")[job]["TasksFinished"] == 1


def numbered():
    """An older node: STOP has another number, and the oldest knows no CANCEL."""
    stop = int(more[0])
    cli, one = client(), node(slots=1)
    one.hello()
    job = cli.queue("old", 2)
    task = one.take_job()
    cli.ask("job/state", {"job_ids": [job], "Action": "cancel"})
    if stop == 6:
        kind, _, seq, _, _ = one.hear()
        assert kind == CANCEL
        one.ok(seq, 1, 0)
    one.end(task, False, "error encountered: signal: killed")
    cli.ask("nodes/shutdown", {"uniq_names": [one.name]})
    kind, _, _, arg0, _ = one.hear()
    assert (kind, arg0) == (stop, 1), kind


def goodbye():
    """The hub stops, and says so."""
    one = node()
    one.hello()
    print("ready", flush=True)
    try:
        one.socket.recv(timeout=30)
    except ConnectionClosed as closed:
        assert closed.rcvd.code == 1001, closed


def new_job():
    print(client().queue("crowd", int(more[0])))
    sys.exit()


def queue():
    name, tasks, place = more
    client().queue(name, int(tasks), place + "/say", place + "/logs")


def statuses():
    print(*[job["Description"]["status"] for _, job in sorted(client().jobs().items())])
    sys.exit()


{
    name: known for name, known in globals().items() if callable(known)
}[case]()
print("good")
