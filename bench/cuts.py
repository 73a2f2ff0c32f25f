"""Links that are cut, so that nobody hears of it, and heal: a hub and workers of every dialect in two networks.

Packets are sent to a hardware address that nobody has, in both directions: nothing is refused, nothing is reset, and
whoever waits for an answer waits. All dialects are tried at once, each in a group of its own.
"""

import collections
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time

HUB, FAR = "10.213.77.1", "10.213.77.2"
# As the two ends are made; the third is nobody's.
HARDWARE = {HUB: "02:00:00:00:00:01", FAR: "02:00:00:00:00:02"}
NOBODY = "02:00:00:00:00:99"

TASK = """#!/bin/sh
# Called by its own name with the name of a task, or by that of a fuq job with a number.
case ${0##*/} in task) id=$1 ;; *) id=${0##*/}.$1 ;; esac
echo "s $CUTS_WHO $id" >> $CUTS_DIR/runs
while test -e $CUTS_DIR/go; do sleep 0.1; done
echo "d $CUTS_WHO $id" >> $CUTS_DIR/runs
echo RES:ok
"""

KINDS = ("native", "dwork", "fuq1", "fuq2", "websocket", "polling", "runexp")


class Cable:
    """Two networks and a cable between them. Needs root."""

    def __init__(self):
        self.hub, self.far = (f"laboro{os.getpid()}{end}" for end in "ab")
        for name in (self.hub, self.far):
            ip("netns", "add", name)
        self.ip(HUB, "link", "add", "cable", "address", HARDWARE[HUB], "type", "veth", "peer", "name", "cable",
                "address", HARDWARE[FAR], "netns", self.far)
        for end in (HUB, FAR):
            self.ip(end, "addr", "add", f"{end}/30", "dev", "cable")
            self.ip(end, "link", "set", "cable", "up")
            self.ip(end, "link", "set", "lo", "up")
        self.mend()

    def ip(self, end, *words):
        ip("-n", self.hub if end == HUB else self.far, *words)

    def at(self, end):
        """Before a command that shall run there."""
        return ["ip", "netns", "exec", self.hub if end == HUB else self.far]

    def lead(self, hub_to, far_to):
        self.ip(HUB, "neigh", "replace", FAR, "lladdr", hub_to, "dev", "cable", "nud", "permanent")
        self.ip(FAR, "neigh", "replace", HUB, "lladdr", far_to, "dev", "cable", "nud", "permanent")

    def cut(self):
        self.lead(NOBODY, NOBODY)

    def mend(self):
        self.lead(HARDWARE[FAR], HARDWARE[HUB])

    def remove(self):
        for name in (self.hub, self.far):
            ip("netns", "del", name)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def until(what, holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Stage:
    """A hub with every door, and workers of every dialect at the other end of the cable."""

    def __init__(self, program, config):
        self.program = program
        self.dir = tempfile.mkdtemp(prefix="laboro-cuts-")
        os.mkdir(f"{self.dir}/fuq")
        self.write("task", TASK)
        os.chmod(f"{self.dir}/task", 0o755)
        self.write("runs", "")
        self.write("hub.toml", config)
        self.log = open(f"{self.dir}/log", "w")
        self.workers = {}
        self.cable = Cable()
        at = f"{HUB}:0,insecure"
        doors = [
            f"dwork={at},group=dwork,stay,lease_ms=60000",
            f"fuq1={at},group=fuq1",
            f"fuq2={at},group=fuq2",
            f"runexp={at},group=runexp,stay,exit_code",
            f"rrmq={at},grace_ms=3000",
        ]
        # One for each group of fuq jobs: two are for workers, all are for those who submit.
        fuqs = {kind: 7001 + number for number, kind in enumerate(("fuq1", "fuq2", "websocket", "polling"))}
        for kind in fuqs:
            self.write(f"{kind}.auth", "auth cuts-and-heals\n")
            os.chmod(f"{self.dir}/{kind}.auth", 0o600)
        doors += [f"fuq={HUB}:{port},group={kind},auth={self.dir}/{kind}.auth" for kind, port in fuqs.items()]
        words = ["hub", f"--dir={self.dir}/hub", f"--http={HUB}:0", f"--native={HUB}:0", "--durability=os"]
        words += [f"--config={self.dir}/hub.toml", *(f"--door={door}" for door in doors)]
        self.hub = subprocess.Popen(
            [*self.cable.at(HUB), program, *words], stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.at = {}
        while len(self.at) < 2 + len(doors) + 1:
            line = self.hub.stdout.readline()
            assert line, f"the hub has ended: see {self.dir}/log"
            door, found, rest = line.partition(" on ")
            if found:
                address = rest.split(",")[0].strip().removeprefix("https://").rstrip("/")
                self.at[door] = address
                for kind, port in fuqs.items():
                    if address.endswith(f":{port}"):
                        self.at[f"{kind}.fuq"] = address

    def write(self, name, text):
        with open(f"{self.dir}/{name}", "w") as file:
            file.write(text)

    def run(self, *words, code=0, timeout=60):
        env = {**os.environ, "LABORO_DIR": f"{self.dir}/hub"}
        ran = subprocess.run(
            [*self.cable.at(HUB), self.program, *words], env=env, capture_output=True, text=True, timeout=timeout
        )
        assert code is None or ran.returncode == code, (words, ran.returncode, ran.stderr)
        return ran.stdout

    def worker(self, kind, name, slots, end=FAR):
        words = ["worker", "-j", str(slots), "--name", name, "--scratch", self.dir]
        trust = ["--insecure", "--auth-file", f"{self.dir}/{kind}.auth"]
        match kind:
            case "native":
                words += ["--access", f"{self.dir}/hub/access.toml", "--group", "native", "--lease", "15s"]
            case "dwork":
                words += ["--from", f"dwork://{self.at['dwork']}", "--stay", "--", f"{self.dir}/task", "{}"]
            case "runexp":
                words += ["--from", f"runexp://{self.at['runexp']}", "--group", "runexp", "--success", "exit-code"]
            case "websocket":
                words += ["--from", f"fuq+wss://{self.at['websocket.fuq']}", *trust]
            case "polling":
                words += ["--from", f"fuq+https://{self.at['polling.fuq']}", *trust]
            case plain:
                words += ["--from", f"{plain}+tcp://{self.at[plain]}"]
        env = {**os.environ, "CUTS_WHO": name, "CUTS_DIR": self.dir}
        log = open(f"{self.dir}/log.{name}", "a")
        self.workers[name] = subprocess.Popen(
            [*self.cable.at(end), self.program, *words], cwd=self.dir, env=env, stdout=log, stderr=log
        )

    def mq_worker(self, name):
        words = ["mq", "worker", "--server", f"tcp://{self.at['rrmq']}", "--slots", "4"]
        log = open(f"{self.dir}/log.{name}", "a")
        self.workers[name] = subprocess.Popen([*self.cable.at(FAR), self.program, *words], stdout=log, stderr=log)

    def joined(self):
        return json.loads(self.run("status", "--json"))["workers"]["connected"]

    def submit(self, kind, name, count):
        names = [f"{name}.{number}" for number in range(1, count + 1)]
        match kind:
            case "dwork":
                ran = subprocess.run(
                    [*self.cable.at(HUB), self.program, "dwork", "-s", self.at["dwork"], "addfile", "-"],
                    input="".join(f"{name}\n" for name in names),
                    capture_output=True,
                    text=True,
                )
                assert ran.returncode == 0, ran.stderr
            case "native" | "runexp":
                task = [f"{self.dir}/task", f"{name}.{{}}"]
                self.run("submit", "-q", "--group", kind, "--array", f"1-{count}", "--", *task)
            case _:
                self.submit_fuq(kind, name, count)

    def submit_fuq(self, kind, name, count):
        """By a door of its group, in the words of a fuq client."""
        os.symlink("../task", f"{self.dir}/fuq/{name}")
        with open(f"{self.dir}/{kind}.auth") as file:
            password = file.read().split()[-1]
        job = {"name": name, "num_tasks": count, "working_dir": self.dir, "logging_dir": f"{self.dir}/fuq"}
        body = {"auth": {"password": password}, "msg": {**job, "command": f"{self.dir}/fuq/{name}"}}
        words = [sys.executable, os.path.abspath(__file__), self.at[kind + ".fuq"], json.dumps(body)]
        subprocess.run([*self.cable.at(HUB), *words], check=True, stdout=subprocess.DEVNULL)

    def begun(self):
        """How often each task was begun."""
        with open(f"{self.dir}/runs") as file:
            return collections.Counter(line.split()[2] for line in file if line.startswith("s "))

    def unfinished(self):
        """Groups that have tasks which are not done."""
        jobs = [json.loads(line) for line in self.run("jobs", "--json").splitlines()]
        is_done = lambda job: job["counts"]["done"] == sum(job["counts"][state] for state in STATES)
        return {job["group"] for job in jobs if not is_done(job)}

    def connections(self):
        """That the hub has with the other end."""
        words = ["ss", "-Htn", "state", "established", "dst", FAR]
        ran = subprocess.run([*self.cable.at(HUB), *words], capture_output=True, text=True, check=True)
        return len(ran.stdout.splitlines())

    def ping(self, end, count, timeout):
        words = ["mq", "client", "--server", f"tcp://{self.at['rrmq']}", "-d", "0", "--json"]
        words += ["--timeout", f"{timeout}s", "bulkping", str(count)]
        return subprocess.Popen(
            [*self.cable.at(end), self.program, *words], stdout=subprocess.PIPE, stderr=self.log, text=True
        )

    def pings(self, end, count, timeout=10):
        out, _ = self.ping(end, count, timeout).communicate()
        return json.loads(out)["successes"] if out.strip() else 0

    def stop(self):
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self.hub.terminate()
        try:
            assert self.hub.wait(60) == 0, f"see {self.dir}/log"
        finally:
            self.cable.remove()
        with open(f"{self.dir}/log") as file:
            assert "panicked" not in file.read(), f"see {self.dir}/log"


def cut(program, seconds, config, patience_s):
    """What is running ends, and more is given out, while nobody can hear of it. Says how long each took afterwards."""
    stage = Stage(program, config)
    try:
        stage.write("go", "")
        for kind in KINDS:
            stage.submit(kind, f"{kind}-run", 2)
            stage.worker(kind, f"{kind}-a", 2)
        until("all run", lambda: len(stage.begun()) == 2 * len(KINDS), 120)
        for kind in KINDS:
            stage.worker(kind, f"{kind}-b", 1)
        stage.mq_worker("rrmq-a")
        until("all have come", lambda: stage.joined() == 2 * len(KINDS), 60)
        until("questions are answered", lambda: stage.pings(HUB, 20) == 20, 60)
        stage.cable.cut()
        cut_at = time.monotonic()
        for kind in KINDS:
            stage.submit(kind, f"{kind}-sent", 1)
        # Of a long cut, they are gone with the worker that they were passed to.
        asked = stage.ping(HUB, 4, int(seconds) + 10)
        os.unlink(f"{stage.dir}/go")
        time.sleep(max(0, seconds - (time.monotonic() - cut_at)))
        left = stage.connections()
        stage.cable.mend()
        mended_at = time.monotonic()
        done = {}
        while len(done) < len(KINDS):
            late = stage.unfinished()
            since = time.monotonic() - mended_at
            done |= {kind: round(since, 1) for kind in KINDS if kind not in late and kind not in done}
            assert since < patience_s, f"not done {patience_s} s after the link was mended: {late}; see {stage.dir}"
        until("questions are answered", lambda: stage.pings(HUB, 20) == 20, patience_s)
        done["rrmq"] = round(time.monotonic() - mended_at, 1)
        answered = json.loads(asked.communicate()[0])["successes"]
        runs = stage.begun()
        twice = sorted({task.split("-")[0] for task, times in runs.items() if times > 1})
        # Every slot of every worker is there again.
        stage.write("go", "")
        for kind in KINDS:
            stage.submit(kind, f"{kind}-again", 3)
        again = lambda: sum(1 for task in stage.begun() if "-again" in task)
        until("every slot has something", lambda: again() == 3 * len(KINDS), patience_s)
        all_s = round(time.monotonic() - mended_at, 1)
        os.unlink(f"{stage.dir}/go")
        until("all is done", lambda: not stage.unfinished(), 60)
        until("no connection is left over", lambda: stage.connections() <= CONNECTIONS_MAX, patience_s)
        return {
            "cut_s": seconds,
            "connections_before_it_heals": left,
            "done_s": done,
            "all_slots_s": all_s,
            "begun_twice": twice,
            "questions_answered_of_4": answered,
        }
    finally:
        stage.stop()


# One for each worker, and one more for each slot of those that poll.
CONNECTIONS_MAX = 2 * len(KINDS) + 1 + 3
STATES = ("waiting", "blocked", "ready", "delayed", "held", "running", "done", "failed", "cancelled")


def post(address, body):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    line = http.client.HTTPSConnection(address, timeout=20, context=context)
    line.request("POST", "/client/job/new", body, {"content-type": "application/json"})
    answer = line.getresponse()
    assert answer.status == 200, (answer.status, answer.read())


if __name__ == "__main__":
    post(*sys.argv[1:])
