"""A real Prometheus asks a real hub, and promtool reads what it says and our alert rules.

Arguments: the address of the hub, the directory of the test, the program, the directory of docs/. The hub's directory is
`hub` below that of the test; there is a pool, and a task has run.
"""

import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import time
import tomllib
import urllib.parse
import urllib.request

address, place, laboro, docs = sys.argv[1:5]
place, docs = pathlib.Path(place), pathlib.Path(docs)
access = tomllib.loads((place / "hub/access.toml").read_text())
(place / "hub.pem").write_text(access["certificate"])
trust = ssl.create_default_context(cafile=place / "hub.pem")


def metrics(kind):
    headers = {"authorization": f"Bearer {access['token']}", "accept": kind}
    request = urllib.request.Request(f"{address}/metrics", headers=headers)
    with urllib.request.urlopen(request, context=trust) as answer:
        return answer.headers["content-type"], answer.read().decode()


def names_that_are_asked_for():
    words = (docs / "grafana.json").read_text() + (docs / "alerts.yml").read_text() + table()
    return set(re.findall(r"\b(?:laboro|process)_[a-z_]*[a-z]", words)) - {"laboro_door"}


def table():
    """Of the manual, names written whole."""
    return "".join(line for line in (docs / "dashboard.md").read_text().splitlines() if line.startswith("| `laboro_"))


def what_is_asked_for_is_there(text):
    known = set(re.findall(r"^([a-z_]+)(?:\{| )", text, re.MULTILINE))
    known |= set(re.findall(r"^# TYPE ([a-z_]+) histogram", text, re.MULTILINE))
    # A request broker is at another door.
    asked = {name for name in names_that_are_asked_for() if not name.startswith("laboro_broker")}
    assert not asked - known, sorted(asked - known)
    assert len(asked) > 30, asked


def promtool_has_nothing_to_say(text):
    ran = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = subprocess.run(["promtool", "check", "rules", docs / "alerts.yml"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def a_real_prometheus_scrapes_it():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (place / "token").write_text(access["token"])
    (place / "prometheus.yml").write_text(f"""
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [{docs.resolve()}/alerts.yml]
scrape_configs:
  - job_name: laboro
    scheme: https
    tls_config: {{ ca_file: {place}/hub.pem }}
    authorization: {{ credentials_file: {place}/token }}
    static_configs: [{{ targets: ["{address.removeprefix('https://')}"] }}]
""")
    words = ["prometheus", f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/tsdb",
             f"--web.listen-address=127.0.0.1:{port}"]
    with open(place / "prometheus.log", "wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        answers(port, 'up{job="laboro"}', "1")
        answers(port, 'sum(laboro_tasks{state="done"})', "1")
        answers(port, "laboro_attempt_seconds_count", "1")
        answers(port, "laboro_queue_seconds_count", "1")
        answers(port, 'count(ALERTS{alertname="LaboroDown"}) or vector(0)', "0")
    finally:
        server.terminate()
        server.wait()


def answers(port, query, value):
    last = None
    for _ in range(600):
        try:
            asked = urllib.parse.urlencode({"query": query})
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{asked}") as answer:
                last = json.load(answer)["data"]["result"]
            if last and last[0]["value"][1] == value:
                return
        except OSError as error:
            last = error
        time.sleep(0.1)
    raise SystemExit(f"{query}: {last}\n{(place / 'prometheus.log').read_text()[-2000:]}")


kind, text = metrics("text/plain")
assert kind.startswith("text/plain; version=0.0.4"), kind
assert metrics("*/*")[0].startswith("application/openmetrics-text")
what_is_asked_for_is_there(text)
promtool_has_nothing_to_say(text)
a_real_prometheus_scrapes_it()
print("good")
