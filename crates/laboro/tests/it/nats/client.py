"""An HTTP client that is none of ours.

client.py ACCESS look         what a hub that only follows answers, for the first address of the file
client.py ACCESS work FILE    submits jobs with keys until the file is there; a request that failed is tried once more
"""

import http.client
import json
import os
import ssl
import sys
import time
import tomllib
from urllib.parse import urlsplit

with open(sys.argv[1], "rb") as file:
    access = tomllib.load(file)
addresses = access["http"].split(",")
tls = ssl.create_default_context(cadata=access["certificate"])
tls.check_hostname = False
head = {"Authorization": f"Bearer {access['token']}", "Content-Type": "application/json"}


def ask(address, method, path, body=None):
    connection = http.client.HTTPSConnection(address, context=tls, timeout=20)
    try:
        connection.request(method, path, body, head)
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())
    finally:
        connection.close()


def look():
    status, _, answer = ask(addresses[0], "GET", "/api/v1/health")
    assert (status, answer["reason"]) == (503, "not_leader"), (status, answer)
    status, headers, answer = ask(addresses[0], "GET", "/api/v1/jobs?limit=3")
    assert (status, answer["reason"]) == (307, "not_leader"), (status, answer)
    print(headers["Location"])


def attempt(body):
    """At any of the hubs, and where they send it."""
    trouble = None
    for address in addresses:
        for _ in range(5):
            try:
                status, headers, answer = ask(address, "POST", "/api/v1/jobs", body)
            except (OSError, http.client.HTTPException) as error:
                trouble = f"{address}: {error!r}"
                break
            if status == 307:
                address = urlsplit(headers["Location"]).netloc
                continue
            if status < 300:
                return answer["job"], None
            trouble = f"{address}: {status} {answer}"
            break
    return None, trouble


def work(enough):
    jobs, again = [], 0
    while not os.path.exists(enough):
        tasks = [{"command": ["true"]}]
        body = json.dumps({"key": f"key {len(jobs)}", "tasks": tasks})
        job, trouble = attempt(body)
        if job is None:
            again += 1
            job, second = attempt(body)
            assert job is not None, f"twice: {trouble}; {second}"
        jobs.append(job)
    assert len(set(jobs)) == len(jobs), "one key, two jobs"
    print(json.dumps({"jobs": len(jobs), "again": again}))


if sys.argv[2] == "look":
    look()
else:
    work(sys.argv[3])
