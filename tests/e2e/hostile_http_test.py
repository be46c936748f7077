"""Hostile and careless clients of HTTP against the real program: whatever they do, /health answers, all
gauges return to where they were, and memory stays bounded.

  hostile_http_test.py HIPPODROME MODELS_DIR [--long] [--report]

The short form takes seconds and is a test; --long has the sizes that docs/serving.md reports.
--report measures instead of asserting, on the main listener alone, so that older programs can be
compared.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LARGE = 7 << 20
HEAD = "POST {} HTTP/1.1\r\nHost: h\r\n"


def request(path, body, fields=""):
    return (HEAD.format(path) + fields + f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def completion(prompt, tokens, stream=False):
    return json.dumps({"model": "h3-demo", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                       "stream": stream, "ignore_eos": True}).encode()


class Server:
    def __init__(self, hippodrome, models, *options, files=None):
        """`files`: the limit of descriptors of the server."""
        self.log = tempfile.NamedTemporaryFile("w+", prefix="hippodrome-")
        command = [hippodrome, "serve", "--device", "cpu", "--http", "127.0.0.1:0",
                   "--grpc", "127.0.0.1:0", *options]
        for name in ("h3-demo", "bigs-demo"):
            command += ["--model", os.path.join(models, name)]
        limit = None
        if files is not None:
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT,
                                        preexec_fn=limit)
        self.http = self.address("http")
        self.admin = self.address("admin") if "--admin" in options else self.http
        for _ in range(600):
            if self.get("/ready")[0] == 200:
                return
            time.sleep(0.1)
        raise RuntimeError("not ready: " + self.said())

    def said(self):
        with open(self.log.name) as file:
            return file.read()

    def address(self, name):
        for _ in range(600):
            found = re.search(rf"^{name} listening on (.*):(\d+)$", self.said(), re.MULTILINE)
            if found:
                return found[1], int(found[2])
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError("the server does not listen: " + self.said())

    def connect(self, where=None, timeout=60):
        return socket.create_connection(where or self.http, timeout)

    def send(self, data, where=None, timeout=60):
        """The status and the text of the first answer to `data`; 0 where there is none."""
        try:
            with self.connect(where, timeout) as client:
                client.sendall(data)
                return self.read(client)
        except OSError:
            return 0, ""

    @staticmethod
    def read(client):
        text = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in text or not Server.complete(text):
                piece = client.recv(65536)
                if not piece:
                    break
                text += piece
        text = text.decode(errors="replace")
        status = re.match(r"HTTP/1.1 (\d+)", text)
        return (int(status[1]) if status else 0), text

    @staticmethod
    def complete(text):
        head, body = text.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)content-length: (\d+)", head)
        return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")

    def get(self, path, where=None, timeout=60):
        return self.send(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode(), where, timeout)

    def metrics(self):
        _, text = self.get("/metrics", self.admin)
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in text.splitlines() if line.startswith("hippodrome_")}

    def load(self):
        """What must be as before when nobody asks for anything."""
        names = ("hippodrome_requests_running", "hippodrome_requests_queued",
                 "hippodrome_state_bytes", "hippodrome_state_slots", "hippodrome_http_body_bytes")
        return {name: value for name, value in self.metrics().items() if name.startswith(names)}

    def resident(self):
        """In MiB."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def stop(self, signals=1):
        for _ in range(signals):
            self.process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()


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


class Watch:
    """Asks for /health every 50 ms, each time on a new connection to both listeners."""

    def __init__(self, server):
        self.server, self.ends, self.slowest, self.failures, self.asked = server, False, 0, 0, 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ends:
            for where in {self.server.http, self.server.admin}:
                took, (status, _) = seconds(lambda: self.server.get("/health", where, 5))
                self.asked += 1
                self.failures += status != 200
                self.slowest = max(self.slowest, took)
            time.sleep(0.05)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()


class Attacks:
    def __init__(self, server, long, report):
        self.server, self.long, self.report = server, long, report

    def size(self, short, long):
        return long if self.long else short

    def check(self, condition, what):
        if not condition and not self.report:
            raise AssertionError(what + "\n" + self.server.said())

    def run(self, name, attack):
        """Runs it under watch; then everything must be as it was."""
        base, before = self.server.load(), self.server.resident()
        with Watch(self.server) as watch:
            told = attack()
        back, returned = seconds(lambda: wait_until(lambda: self.server.load() == base))
        # Memory is given back behind the gauges, and to the system every few seconds.
        wait_until(lambda: self.server.resident() - before < 16, self.size(1, 15))
        grown = self.server.resident() - before
        self.check(watch.failures == 0, f"{name}: {watch.failures} of {watch.asked} /health failed")
        self.check(returned, f"{name}: {self.server.load()} is not {base}")
        self.check(grown < 64, f"{name}: grew by {grown:.0f} MiB")
        print(f"{name}: {told}; /health failed {watch.failures} of {watch.asked}, slowest "
              f"{1000 * watch.slowest:.0f} ms; {grown:+.0f} MiB; gauges "
              f"{'' if returned else 'not '}back after {back:.1f} s", flush=True)

    # ---- The attacks ----

    def silent(self):
        count = self.size(1100, 1100)
        clients = [self.server.connect() for _ in range(count)]
        took, (status, _) = seconds(lambda: self.server.get("/v1/models", timeout=5))
        time.sleep(self.size(0.2, 5))  # under watch
        for client in clients:
            client.close()
        self.check(status == 200, "silent sockets lock clients out")
        return f"{count} silent sockets: a client gets {status} after {1000 * took:.0f} ms"

    def drip(self):
        count = self.size(200, 1000)
        clients = [self.server.connect() for _ in range(count)]
        end = time.monotonic() + self.size(2, 12)
        sent = "GET /health HTTP/1.1\r\nX-" + "x" * 1000
        for at in range(len(sent)):
            if time.monotonic() > end:
                break
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(sent[at].encode())
            time.sleep(0.1)
        for client in clients:
            client.close()
        return f"{count} clients send a header a byte at a time"

    def bodies(self):
        count = self.size(30, 60)
        head = (HEAD.format("/v1/completions") + f"Content-Length: {LARGE}\r\n\r\n").encode()
        clients, refused, before = [], 0, self.server.resident()
        for _ in range(count):
            client = self.server.connect()
            client.settimeout(5)
            with contextlib.suppress(OSError):
                client.sendall(head)
                client.sendall(b" " * (LARGE - 1))
            clients.append(client)
        for client in clients:
            client.settimeout(0.05)
            refused += self.server.read(client)[0] == 503
        held = self.server.resident() - before
        small = self.server.send(request("/v1/completions", completion("a", 1)), timeout=10)[0]
        for client in clients:
            client.close()
        self.check(refused > 0, "no body was refused")
        self.check(held < 128, f"bodies hold {held:.0f} MiB")
        self.check(small == 200, "open bodies lock small ones out")
        return (f"{count} bodies of 7 MiB but for a byte: {refused} get 503, the rest hold "
                f"{held:.0f} MiB, a small request gets {small}")

    def chunks(self):
        count = 1 << 16
        head = (HEAD.format("/v1/completions") + "Transfer-Encoding: chunked\r\n\r\n").encode()
        for _ in range(self.size(2, 10)):
            took, (status, _) = seconds(
                lambda: self.server.send(head + b"1\r\n \r\n" * (count + 1) + b"0\r\n\r\n"))
            self.check(status == 413, f"{count + 1} chunks: {status}")
        return f"{count + 1} chunks of a byte: {status} after {1000 * took:.0f} ms"

    def smuggling(self):
        behind = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
        heads = ["Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
                 "Content-Length: 0\r\nTransfer-Encoding: chunked",
                 "Content-Length: 0\r\nContent-Length: 1", "Transfer-Encoding : chunked",
                 "Host: other", "X: a\r\n b"]
        passed = 0
        for head in heads:
            with self.server.connect() as client:
                client.sendall(HEAD.format("/health").encode() + head.encode() + b"\r\n\r\n" + behind)
                client.settimeout(5)
                text = ""
                with contextlib.suppress(OSError):
                    while piece := client.recv(65536):
                        text += piece.decode()
            passed += text.count("HTTP/1.1 ") != 1 or not text.startswith("HTTP/1.1 400")
        self.check(passed == 0, f"{passed} ambiguous requests were taken")
        return f"{passed} of {len(heads)} ambiguous requests were taken"

    def large(self):
        """Large bodies keep their threads busy while one that is not so large asks."""
        def tokenize(words):
            return request("/tokenize",
                           json.dumps({"model": "h3-demo", "prompt": "word " * words}).encode())

        body = tokenize(LARGE // 5)
        count = self.size(4, 16)
        clients = []
        for _ in range(count):
            client = self.server.connect()
            client.sendall(body)
            clients.append(client)
        took, (status, _) = seconds(lambda: self.server.send(tokenize(14000)))
        for client in clients:
            client.close()
        self.check(status == 200, "a body of 70 KB was refused")
        return f"{count} bodies of 7 MiB: one of 70 KB takes {took:.2f} s"

    def abandoned(self):
        """Clients that leave, in each phase, with bytes sent ahead, half-closed or reset."""
        draw = random.Random(1)
        count = self.size(60, 1000)
        prompts = ["word " * n for n in (1, 200, 20000)]

        def one(_):
            prompt = draw.choices(prompts, [10, 4, 1])[0]
            body = completion(prompt, 2000, draw.random() < 0.5)
            with contextlib.suppress(OSError), self.server.connect() as client:
                client.sendall(request("/v1/completions", body))
                client.sendall(b"x" * draw.choice([0, 0, 100, 80 << 10, 300 << 10]))
                time.sleep(draw.choice([0, 0.01, 0.1]))
                if draw.random() < 0.3:
                    client.shutdown(socket.SHUT_WR)
                if draw.random() < 0.3:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(one, range(count)))
        return f"{count} clients leave before their answers"

    def all(self):
        self.run("silent", self.silent)
        self.run("drip", self.drip)
        self.run("bodies", self.bodies)
        self.run("chunks", self.chunks)
        self.run("smuggling", self.smuggling)
        self.run("large", self.large)
        self.run("abandoned", self.abandoned)


def check_descriptors(hippodrome, models):
    """Without descriptors idle connections make room, and clients are served when some are free."""
    try:
        Server(hippodrome, models, files=200)
        raise AssertionError("it starts with fewer descriptors than connections")
    except RuntimeError as error:
        assert "file descriptors" in str(error), error
    with Server(hippodrome, models, "--admin", "127.0.0.1:0") as server:
        open_files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (open_files + 20, most))
        clients = []
        for _ in range(200):
            with contextlib.suppress(OSError):
                clients.append(server.connect(timeout=1))
        assert server.get("/health", timeout=10)[0] == 200, "silent sockets took all descriptors"
        for client in clients:
            client.close()
        assert server.get("/health", timeout=10)[0] == 200, server.said()
        assert server.stop() == 0
    print("descriptors: passed")


def check_drain(hippodrome, models):
    """Readiness first, refusals then; what the grace period cuts is said, and is the exit status."""
    with Server(hippodrome, models, "--admin", "127.0.0.1:0", "--drain-delay", "60",
                "--grace-seconds", "60") as server:
        stream = server.connect()
        stream.sendall(request("/v1/completions", completion("a", 100000, True)))
        assert wait_until(lambda: server.metrics()[
            'hippodrome_requests_running{model="h3-demo",phase="decode"}'] == 1)
        server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: server.get("/ready", server.admin)[0] == 503)
        answer = server.send(request("/v1/completions", completion("a", 1)))
        assert answer[0] == 200, answer
        code = server.stop()  # the second signal: no more waiting
        assert code == 1 and "1 requests were still running" in server.said(), (code, server.said())
        stream.close()
    with Server(hippodrome, models, "--grace-seconds", "60") as server:
        took, code = seconds(server.stop)
        assert code == 0, (code, server.said())
    print(f"drain: passed; an idle server stops in {took:.1f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = [] if arguments.report else ["--admin", "127.0.0.1:0"]
    with Server(arguments.hippodrome, arguments.models, *options) as server:
        Attacks(server, arguments.long, arguments.report).all()
        code = server.stop()
        assert code == 0 or arguments.report, (code, server.said())
    if not arguments.report:
        check_descriptors(arguments.hippodrome, arguments.models)
        check_drain(arguments.hippodrome, arguments.models)
    print("passed" if not arguments.report else "measured")


if __name__ == "__main__":
    sys.exit(main())
