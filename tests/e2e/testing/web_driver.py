"""Chromium without a window, driven over the W3C's WebDriver protocol, which is JSON over HTTP."""

import base64
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which elements are named

# The characters by which the protocol names keys.
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Right": "\ue014",
        "Down": "\ue015", "Up": "\ue013", "Control": "\ue009", "Home": "\ue011", "End": "\ue010"}


def missing():
    """The first of the programs that are needed and are not there, or None."""
    return next((name for name in ("chromium", "chromedriver") if not shutil.which(name)), None)


class Browser:
    """One window, with a profile of its own in the folder `work`. Use as a context."""

    def __init__(self, work):
        self.log = open(os.path.join(work, "chromedriver.log"), "a")
        self.url = f"http://127.0.0.1:{self.start(work)}"
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update",
                     "--hide-scrollbars", "--force-color-profile=srgb",
                     f"--user-data-dir={os.path.join(work, 'profile')}",
                     # Whatever has another name or address is not found, wherever that is.
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium's own does not work for root
        try:
            session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        except BaseException:
            self.driver.kill()
            raise
        self.url += "/session/" + session["sessionId"]
        self.open("about:blank")
        self.requested()  # those of the page that a new window has are nobody's concern

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.log.close()

    def start(self, work):
        """Starts the driver; its port. It takes one that is free for one kind of addresses, and
        ends where another program has it for the other."""
        for _ in range(5):
            self.log.truncate(0)
            self.driver = subprocess.Popen(
                ["chromedriver", "--port=0"], stdout=self.log, stderr=subprocess.STDOUT,
                env={**os.environ, "HOME": work})
            port = self.port()
            if port:
                return port
        self.log.close()
        raise RuntimeError("chromedriver does not start: " + self.said())

    def said(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def port(self):
        """None if the driver ends or says nothing for half a minute."""
        for _ in range(600):
            found = re.search(r"started successfully on port (\d+)", self.said())
            if found:
                return found[1]
            if self.driver.poll() is not None:
                return None
            time.sleep(0.05)
        self.driver.kill()
        self.driver.wait()
        return None

    def call(self, method, path, body=None):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with DIRECT.open(request, timeout=300) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {json.load(error)['value']['message']}") from error

    def devtools(self, command, **parameters):
        """A command of Chromium's own protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    # ---- The page

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """What the body `script` of a function returns, which may be a promise."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=120):
        """The first value of `script` that JavaScript takes for true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script, *arguments)
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError(f"{seconds} s without: {script} {arguments}")

    def find(self, selector):
        """An element that is there now, or soon, for the other functions."""
        self.wait("return document.querySelector(arguments[0]) !== null", selector)
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        """Puts `text` into a field in the place of what it has, key by key."""
        element = self.find(selector)
        self.call("POST", f"/element/{element}/clear")
        self.call("POST", f"/element/{element}/value", {"text": text})

    def choose(self, selector, value):
        """Another option of a list."""
        self.click(f'{selector} option[value="{value}"]')

    def press(self, *keys):
        """Keys of the keyboard, wherever the focus is: of KEYS, or characters; all together."""
        named = [KEYS.get(key, key) for key in keys]
        actions = [{"type": "keyDown", "value": key} for key in named]
        actions += [{"type": "keyUp", "value": key} for key in reversed(named)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard",
                                                    "actions": actions}]})

    def point(self, selector, kind="mouse"):
        """Moves the mouse there, or taps there with "touch"."""
        actions = [{"type": "pointerMove", "duration": 0, "x": 0, "y": 0,
                    "origin": {ELEMENT: self.find(selector)}}]
        if kind == "touch":
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", "/actions", {"actions": [{
            "type": "pointer", "id": kind, "parameters": {"pointerType": kind},
            "actions": actions}]})

    def text(self, selector):
        """The text as the document has it, hidden parts too."""
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    # ---- The window

    def resize(self, width, height, phone=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=phone)

    def prefer(self, **features):
        """Media features of the system: prefer(color_scheme="dark") for prefers-color-scheme."""
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-" + name.replace("_", "-"), "value": value}
            for name, value in features.items()])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    # ---- What happened since it was asked last

    def console(self):
        """What Chromium and the page said: errors of scripts, failed loads, broken policies."""
        return self.call("POST", "/se/log", {"type": "browser"})

    def requested(self):
        """The address of each request."""
        events = [json.loads(entry["message"])["message"]
                  for entry in self.call("POST", "/se/log", {"type": "performance"})]
        return [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]
