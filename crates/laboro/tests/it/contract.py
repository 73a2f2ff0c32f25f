"""What the OpenAPI document promises, tried with programs that know nothing else of Laboro: a validator, a generated
client, and random requests. Prints "good" when all of it holds.

    contract.py document|client|typed|requests ACCESS_FILE
"""

import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import tomllib
import urllib.request


class Hub:
    def __init__(self, path):
        with open(path, "rb") as file:
            access = tomllib.load(file)
        self.address = access["http"].split(",")[0]
        self.url = "https://" + self.address
        self.token = access["token"]
        self.certificate = access["certificate"]
        # Exactly this certificate is trusted, under any name.
        self.tls = ssl.create_default_context(cadata=self.certificate)
        self.tls.check_hostname = False

    def get(self, path):
        request = urllib.request.Request(self.url + path, headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, context=self.tls) as answer:
            return json.load(answer)


def document(hub):
    from openapi_spec_validator import validate

    document = hub.get("/api/v1/openapi.json")
    validate(document)
    names = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["operationId"] not in names, operation["operationId"]
            names.add(operation["operationId"])
            for status, answer in operation["responses"].items():
                assert answer["description"], (method, path, status)
                if status >= "400":
                    assert list(answer["content"]) == ["application/problem+json"], (method, path, status)


def client(hub):
    """The generated client compiles, submits a job, waits for it, and reads a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "openapi.json"), "w") as file:
            json.dump(hub.get("/api/v1/openapi.json"), file)
        with open(os.path.join(folder, "config.yml"), "w") as file:
            file.write("post_hooks: []\n")
        generator = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
        generator += ["--path", "openapi.json", "--config", "config.yml", "--output-path", "laboro_api"]
        subprocess.run(generator, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, "-m", "compileall", "-q", "laboro_api"], cwd=folder, check=True)
        sys.path.insert(0, folder)
        from laboro_api import AuthenticatedClient
        from laboro_api.api.events import wait
        from laboro_api.api.jobs import job, submit
        from laboro_api.models import Problem, SubmitJob

        speaker = AuthenticatedClient(base_url=hub.url, token=hub.token, verify_ssl=hub.tls)
        asked = SubmitJob.from_dict({"name": "generated", "tasks": [{"command": ["true"], "count": 3}]})
        submitted = submit.sync(client=speaker, body=asked)
        waited = wait.sync(client=speaker, jobs=str(submitted.job), timeout_ms=60_000)
        assert waited.finished, waited
        seen = job.sync(submitted.job, client=speaker)
        assert (seen.name, seen.counts.done) == ("generated", 3), seen
        refused = job.sync(4_000_000, client=speaker)
        assert isinstance(refused, Problem) and refused.reason == "no_such_job", refused


def typed(hub):
    """A client in TypeScript: the compiler agrees with what the document says, and the hub with both."""
    modules = os.environ["LABORO_NODE_MODULES"]
    script = os.path.join(os.path.dirname(__file__), "../node/submit.ts")
    with tempfile.TemporaryDirectory() as folder:
        place = lambda name: os.path.join(folder, name)
        os.symlink(modules, place("node_modules"))
        shutil.copy(script, folder)
        for name, text in [("openapi.json", json.dumps(hub.get("/api/v1/openapi.json"))), ("hub.pem", hub.certificate),
                           ("package.json", '{"type": "module"}')]:
            with open(place(name), "w") as file:
                file.write(text)
        tool = lambda name: ["node", os.path.join(modules, name)]
        run = lambda words, **more: subprocess.run(words, cwd=folder, check=True, **more)
        run([*tool("openapi-typescript/bin/cli.js"), "openapi.json", "-o", "hub.ts"], stdout=subprocess.DEVNULL)
        run([*tool("typescript/bin/tsc"), "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes",
             "--target", "es2022", "--module", "nodenext", "--types", "node", "submit.ts"])
        environment = {**os.environ, "HUB": hub.url, "TOKEN": hub.token, "NODE_EXTRA_CA_CERTS": "hub.pem"}
        run(["node", "submit.js"], env=environment)


# Requests that are well-formed and still say something impossible are refused with 422 or 400, as they should be: a
# selection of tasks that are not there, a group without a name. Schemas cannot say all of that.
LEFT_OUT = "positive_data_acceptance"


def requests(hub):
    """With the token of an admin, and a little with those of all other roles, each in a file `ROLE.toml` here."""
    tokens = [("admin", hub.token, "10")]
    for role in ("submit", "watch", "work"):
        with open(role + ".toml", "rb") as file:
            tokens.append((role, tomllib.load(file)["token"], "2"))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "openapi.json"), "w") as file:
            json.dump(hub.get("/api/v1/openapi.json"), file)
        for role, token, examples in tokens:
            command = [sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", hub.url]
            command += ["--tls-verify", "false", "--header", "Authorization: Bearer " + token]
            # What waits or streams has no end of its own, and lines of JSON cannot be made at random. A pool runs commands.
            command += ["--exclude-path-regex", "/(wait|events|stream)$|/pools", "--exclude-checks", LEFT_OUT]
            command += ["--phases", "examples,coverage,fuzzing" if role == "admin" else "examples,fuzzing"]
            command += ["--max-examples", examples, "--seed", "1"]
            command += ["--generation-database", "none", "--continue-on-failure"]
            # A kept connection may be closed just when the next request is on its way, as any client of HTTP has to expect.
            command += ["--request-retries", "3"]
            ran = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if ran.returncode != 0:
                sys.exit(f"{role}:\n{ran.stdout}")


if __name__ == "__main__":
    cases = {"document": document, "client": client, "typed": typed, "requests": requests}
    cases[sys.argv[1]](Hub(sys.argv[2]))
    print("good")
