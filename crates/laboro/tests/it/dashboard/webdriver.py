"""A browser, driven over the WebDriver protocol with nothing but the standard library."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """Chromium without a window. `lines` of its console and what it asked for are kept."""

    def __init__(self, width=1280, height=900):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.until("the driver listens", self.is_ready)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--ignore-certificate-errors", "--no-first-run", "--disable-background-networking",
                 f"--window-size={width},{height}"]
        options = {"args": flags, "perfLoggingPrefs": {"enableNetwork": True, "enablePage": False}}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"

    def is_ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except (urllib.error.URLError, ConnectionError):
            return False

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        found = self.call("POST", self.session + "/elements", {"using": "css selector", "value": selector})
        assert found, f"there is no {selector}"
        return f"{self.session}/element/{found[0][ELEMENT]}"

    def click(self, selector):
        self.until(f"{selector} can be pressed", lambda: self.run(
            "const b = document.querySelector(arguments[0]); return b !== null && !b.disabled", selector))
        self.call("POST", self.find(selector) + "/click", {})

    def type(self, selector, text):
        place = self.find(selector)
        self.call("POST", place + "/clear", {})
        self.call("POST", place + "/value", {"text": text})

    def press(self, keys):
        actions = [{"type": step, "value": key} for key in keys for step in ("keyDown", "keyUp")]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def go(self, place):
        """Another page of the dashboard, without loading it anew."""
        self.run("location.hash = arguments[0]", place)

    def devtools(self, command, **parameters):
        self.call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        return self.call("POST", self.session + "/se/log", {"type": kind})

    def screenshot(self):
        return self.call("GET", self.session + "/screenshot")

    def until(self, what, holds, patience=20):
        deadline = time.monotonic() + patience
        while not holds():
            if time.monotonic() > deadline:
                seen = self.text() if hasattr(self, "session") else ""
                raise AssertionError(f"not in time: {what}\n--- the page says\n{seen[:3000]}")
            time.sleep(0.05)

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
