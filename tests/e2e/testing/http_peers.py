"""The real program, and clients of its HTTP that write their own bytes."""

import argparse
import contextlib
import faulthandler
import json
import multiprocessing
import os
import re
import resource
import signal
import socket
import tempfile
import time

from testing.processes import Process

HEAD = "POST {} HTTP/1.1\r\nHost: h\r\n"
MIB = 1 << 20
HANGS_AFTER = 560  # seconds: tools/test ends a test after 600


def request(path, body, fields=""):
    return (HEAD.format(path) + fields + f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def completion(prompt, tokens, stream=False):
    return json.dumps({"model": "h3-demo", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                       "stream": stream, "ignore_eos": True}).encode()


def generate(prompt, tokens, stream=False):
    return request("/v1/completions", completion(prompt, tokens, stream))


def hostile(number=0):
    """An address that no honest client has: limits for each address must not touch others."""
    return f"127.0.0.{2 + number}"


class Connection(socket.socket):
    """Blocking, from `source`; `window`: bytes that its receive buffer takes."""

    def __init__(self, where, timeout=60, source="127.0.0.1", window=None):
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self.settimeout(timeout)
            if window is not None:
                self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
            # A port is chosen with the peer known: there are as many as there are peers and more.
            self.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
            self.bind((source, 0))
            self.connect(where)
        except OSError:
            self.close()
            raise

    def answer(self):
        """The status and the text of the first answer; 0 where there is none."""
        text = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in text or not complete(text):
                piece = self.recv(65536)
                if not piece:
                    break
                text += piece
        text = text.decode(errors="replace")
        status = re.match(r"HTTP/1.1 (\d+)", text)
        return (int(status[1]) if status else 0), text

    def rest(self):
        """All that comes until the end."""
        text = b""
        with contextlib.suppress(OSError):
            while piece := self.recv(65536):
                text += piece
        return text.decode(errors="replace")


def complete(text):
    head, body = text.split(b"\r\n\r\n", 1)
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")


def send(where, data, timeout=60):
    """The status and the text of the first answer to `data`; 0 where there is none."""
    try:
        with Connection(where, timeout) as client:
            client.sendall(data)
            return client.answer()
    except OSError:
        return 0, ""


class Server(Process):
    """With both demo models. `files`: its limit of descriptors; `before`: what its process does first;
    `key`: an administrator's API key, where it needs one. Sizes are in MiB."""

    def __init__(self, hippodrome, models, *options, files=None, before=None, key=None):
        self.fields = f"Authorization: Bearer {key}\r\n" if key else ""
        command = [hippodrome, "serve", "--device", "cpu", "--http", "127.0.0.1:0",
                   "--grpc", "127.0.0.1:0", *options]
        for name in ("h3-demo", "bigs-demo"):
            command += ["--model", os.path.join(models, name)]
        if files is not None:
            before = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.folder = tempfile.TemporaryDirectory(prefix="hippodrome-")
        super().__init__(command, self.folder.name + "/log", preexec_fn=before)
        self.http = self.address("http")
        self.admin = self.address("admin") if "--admin" in options else self.http
        if not wait_until(self.ready):
            raise RuntimeError("not ready: " + self.said())

    def ready(self):
        return self.get("/ready")[0] == 200

    def address(self, name):
        host, port = self.listens(name).rsplit(":", 1)
        return host, int(port)

    def connect(self, timeout=60):
        return Connection(self.http, timeout)

    def attack(self, number=0, window=None):
        """A connection of a hostile peer."""
        return Connection(self.http, source=hostile(number), window=window)

    def send(self, data, timeout=60):
        return send(self.http, data, timeout)

    def get(self, path, where=None, timeout=60):
        text = f"GET {path} HTTP/1.1\r\nHost: h\r\n{self.fields}\r\n"
        return send(where or self.http, text.encode(), timeout)

    def metrics(self):
        _, text = self.get("/metrics", self.admin)
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in text.splitlines() if line.startswith("hippodrome_")}

    def running(self):
        return sum(value for name, value in self.metrics().items()
                   if name.startswith("hippodrome_requests_running"))

    def load(self):
        """What must be as before when nobody asks for anything."""
        names = ("hippodrome_requests_running", "hippodrome_requests_queued",
                 "hippodrome_state_bytes", "hippodrome_state_slots", "hippodrome_http_body_bytes")
        return {name: value for name, value in self.metrics().items() if name.startswith(names)}

    def at_rest(self):
        """load(), once no request has anything: a client has its answer before its slot is free again."""
        def rests():
            return all(value == 0 for name, value in self.load().items() if 'state="free"' not in name)
        assert wait_until(rests), self.load()
        return self.load()

    def status(self, field):
        return super().status(field) / MIB

    def signal(self):
        self.process.send_signal(signal.SIGTERM)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


def arguments(*more):
    """What the long form of a test is called with: the program, models, and `more` places and options. The short form
    says where it hangs before its time ends."""
    parser = argparse.ArgumentParser()
    for name in ("hippodrome", "models", *more):
        parser.add_argument(name, **({"action": "store_true"} if name.startswith("--") else {}))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args()
    if not given.long:
        faulthandler.dump_traceback_later(HANGS_AFTER)
    return given


def write_report(path, report):
    """Where a path is given."""
    if path:
        with open(path, "w") as file:
            file.write(json.dumps(report, indent=1) + "\n")


class Beside:
    """Runs `work(..., pipe)` in a process of its own, until `pipe` says "end". `found`: what it sends
    then."""

    def __init__(self, work, *arguments):
        self.pipe, far = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(*arguments, far))

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.pipe.send("end")
        self.found = self.pipe.recv()
        self.process.join()


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def seconds(function):
    start = time.monotonic()
    result = function()
    return time.monotonic() - start, result


def percentile(sorted_values, part):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * part))]


def _watch(listeners, pipe):
    times, failures = [], 0
    while not times or not pipe.poll(0.05):
        for where in listeners:
            took, (status, _) = seconds(
                lambda: send(where, b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n", 30))
            times.append(1000 * took)
            failures += status != 200
    times.sort()
    pipe.send({"asked": len(times), "failed": failures, "p50_ms": round(percentile(times, 0.5), 2),
               "p99_ms": round(percentile(times, 0.99), 2), "slowest_ms": round(times[-1], 2)})


def watch(server):
    """Asks for /health every 50 ms, each time on a new connection to each listener. `found`, in the end:
    how often, how many failed, and how long they took."""
    return Beside(_watch, sorted({server.http, server.admin}))
