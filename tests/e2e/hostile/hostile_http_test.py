"""Hostile and careless clients of HTTP against the real program: whatever they do, /health answers, all
gauges return to where they were, and memory stays bounded.

  hostile_http_test.py HIPPODROME MODELS_DIR [--long] [--report] [--sanitized] [--json FILE]
      [--only ATTACK]

The short form takes seconds and is a test; --long has the sizes that docs/hostile-peers.md reports.
--report measures instead of asserting, on the main listener alone, so that older programs can be
compared. --sanitized: the program keeps what is freed, so that its memory says nothing.
"""

import argparse
import concurrent.futures
import contextlib
import gzip
import json
import os
import pathlib
import random
import resource
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers
from testing.http_peers import (HEAD, MIB, Server, completion, generate, request, seconds,
                        wait_until)

LARGE = 7 * MIB
LARGEST = 8 * MIB
PATH = "/v1/completions"
# Pages of keys and values stay with the server once they were used.
STATE_MIB = 128
GET = "GET {} HTTP/1.1\r\nHost: h\r\n"


class Attacks:
    def __init__(self, server, arguments):
        self.server, self.long = server, arguments.long
        self.report, self.sanitized = arguments.report, arguments.sanitized
        self.found = []

    def size(self, short, long):
        return long if self.long else short

    def check(self, condition, what):
        if not condition and not self.report:
            raise AssertionError(f"{what}\n{self.server.said()}")

    def check_memory(self, mib, most, what):
        self.check(self.sanitized or mib < most, f"{what}: {mib:.0f} MiB")

    def run(self, attack):
        """Runs it under watch; then everything must be as it was. It tells what it measured."""
        name = attack.__name__
        base, before = self.server.load(), self.server.resident()
        self.server.forget_peak()
        with http_peers.watch(self.server) as watch:
            told = attack()
        peak = self.server.peak() - before
        back, returned = seconds(lambda: wait_until(lambda: self.server.load() == base))
        # Memory is given back behind the gauges, and to the system every few seconds.
        allowed = 64 + (STATE_MIB if attack in (self.slow_readers, self.abandoned) else 0)
        if not self.sanitized:
            wait_until(lambda: self.server.resident() - before < self.size(allowed, 16),
                       self.size(60, 10))
        grown = self.server.resident() - before
        found = {"attack": name, **told, "health": watch.found, "peak_mib": round(peak, 1),
                 "kept_mib": round(grown, 1), "gauges_back_s": round(back, 2) if returned else None}
        print(json.dumps(found), flush=True)
        self.found.append(found)
        self.check(watch.found["failed"] == 0, f"{name}: /health failed")
        self.check(returned, f"{name}: {self.server.load()} is not {base}")
        self.check_memory(grown, allowed, f"{name} keeps memory")

    # ---- Slow peers ----

    def silent(self):
        """As many as there may be connections, from more addresses than the limit of one bounds."""
        count = self.size(1100, 1100)
        clients = [self.server.attack(i % 4) for i in range(count)]
        took, (status, _) = seconds(lambda: self.server.get("/v1/models", timeout=30))
        time.sleep(self.size(0.2, 12))  # under watch
        for client in clients:
            client.close()
        self.check(status == 200, "silent sockets lock clients out")
        return {"connections": count, "others_get": status, "after_ms": round(1000 * took, 1)}

    def drip(self, begin, count, time_limit):
        """`count` connections send a byte each half second behind `begin`, and come again when they
        are cut off."""
        period, born, cut, longest = self.size(0.2, 0.5), {}, 0, 0.0

        def connect():
            client = self.server.attack(len(born) % 4)
            client.sendall(begin)
            client.setblocking(False)
            born[client] = time.monotonic()

        end = time.monotonic() + self.size(1.5, 120)
        while time.monotonic() < end:
            turn = time.monotonic() + period
            while len(born) < count and time.monotonic() < turn:
                connect()
            for client in list(born):
                try:
                    client.send(b"x")
                    if client.recv(4096):
                        raise ConnectionError
                except BlockingIOError:
                    continue
                except OSError:
                    cut += 1
                    longest = max(longest, time.monotonic() - born.pop(client))
                    client.close()
            time.sleep(max(0.0, turn - time.monotonic()))
        for client, since in born.items():
            longest = max(longest, time.monotonic() - since)
            client.close()
        self.check(longest < time_limit + 10, f"a slow client stayed for {longest:.1f} s")
        return {"connections": count, "cut": cut, "longest_s": round(longest, 1)}

    def drip_headers(self):
        return self.drip(b"GET /health HTTP/1.1\r\nX-", self.size(200, 1000), 10)

    def drip_bodies(self):
        begin = HEAD.format(PATH) + "Content-Length: 100000\r\n\r\n"
        return self.drip(begin.encode(), self.size(200, 1000), 30)

    def slow_readers(self):
        """Streams whose clients read nothing, or a byte now and then: they end, and give back what
        they hold, though the clients stay."""
        # In the short form they end with their last token, in the long one far behind it.
        count, tokens = self.size((4, 1000), (8, 12000))
        clients = []
        for _ in range(count):
            clients.append(self.server.attack(window=4096))
            clients[-1].sendall(generate("a", tokens, stream=True))
            clients[-1].setblocking(False)
        self.check(wait_until(lambda: self.server.running() > 0), "no stream runs")
        polite, (status, _) = seconds(lambda: self.server.send(generate("a", 8)))
        begin = time.monotonic()

        def ended():
            for client in clients[::2]:
                with contextlib.suppress(OSError):
                    client.recv(1)
            return self.server.running() == 0

        returned = wait_until(ended, 300)
        took = time.monotonic() - begin
        # Once a client that reads nothing has been given up, no memory waits for it.
        cut = None
        if self.long:
            cut = wait_until(lambda: self.server.metrics().get(
                'hippodrome_http_connections_timed_out_total{listener="main"}', 0) >= count // 2)
            self.check(cut, "who reads nothing is not cut off")
        for client in clients:
            client.close()
        self.check(status == 200, "slow readers lock others out")
        self.check(returned, "streams stay whose clients do not read")
        return {"connections": count, "tokens": tokens, "slots_back_s": round(took, 1), "cut_off": cut,
                "another_request_s": round(polite, 2)}

    # ---- Much ----

    def bodies(self):
        """Open bodies that lack a byte."""
        count = self.size(30, 60)
        head = (HEAD.format(PATH) + f"Content-Length: {LARGE}\r\n\r\n").encode()
        clients, refused, before = [], 0, self.server.resident()
        for _ in range(count):
            client = self.server.attack()
            client.settimeout(5)
            with contextlib.suppress(OSError):
                client.sendall(head)
                client.sendall(b" " * (LARGE - 1))
            clients.append(client)
        for client in clients:
            client.settimeout(0.05)
            refused += client.answer()[0] == 503
        held = self.server.resident() - before
        small = self.server.send(generate("a", 1))[0]
        for client in clients:
            client.close()
        self.check(refused > 0, "no body was refused")
        self.check_memory(held, 128, "bodies")
        self.check(small == 200, "open bodies lock small ones out")
        return {"bodies": count, "bytes": LARGE, "got_503": refused, "held_mib": round(held, 1),
                "a_small_one_gets": small}

    def judge(self, rows):
        """Sends each of `rows`, of name, bytes and the status expected; what came, and after how
        many milliseconds at best of three."""
        found = {}
        for name, data, expected in rows:
            times = []
            for _ in range(3):
                with self.server.attack() as client:
                    begin = time.monotonic()
                    with contextlib.suppress(OSError):
                        client.sendall(data)
                    status, text = client.answer()
                    times.append(1000 * (time.monotonic() - begin))
            self.check(status == expected, f"{name}: {status} is not {expected}: {text[:500]}")
            found[name] = {"status": status, "ms": round(min(times), 1)}
        return found

    def lengths(self):
        """Bodies about their limit, and lengths that are none."""
        body = completion("a", 1)

        def padded(size):
            return request(PATH, body + b" " * (size - len(body)))

        def said(fields, sent=body):
            return (HEAD.format(PATH) + fields + "\r\n\r\n").encode() + sent

        packed = gzip.compress(b" " * (100 * MIB))
        return self.judge([
            ("limit-1", padded(LARGEST - 1), 200), ("limit", padded(LARGEST), 200),
            ("limit+1", padded(LARGEST + 1), 413),
            ("gzip 1000:1", request(PATH, packed, "Content-Encoding: gzip\r\n"), 415),
            ("negative", said("Content-Length: -1"), 400),
            ("not a number", said("Content-Length: 1e3"), 400),
            ("beyond 64 bits", said("Content-Length: 18446744073709551617"), 413),
            ("two that differ", said("Content-Length: 1\r\nContent-Length: 2"), 400),
            ("absent", said("X: y", b""), 400)])

    def heads(self):
        """Heads that never should end."""
        before = self.server.resident()
        self.server.forget_peak()
        fields = "".join(f"X-{i}: y\r\n" for i in range(10000))
        found = self.judge([
            ("a field of 1 MiB", (GET.format("/health") + "X: " + "x" * MIB).encode(), 431),
            ("10,000 fields", (GET.format("/health") + fields + "\r\n").encode(), 431),
            ("a target of 1 MiB", GET.format("/" + "x" * MIB).encode(), 414)])
        grown = self.server.peak() - before
        self.check_memory(grown, 16, "heads")
        return {**found, "grown_mib": round(grown, 1)}

    def chunks(self):
        before = self.server.resident()
        self.server.forget_peak()
        head = (HEAD.format(PATH) + "Transfer-Encoding: chunked\r\n\r\n").encode()
        rows = [(f"{count} of a byte", head + b"1\r\n \r\n" * count + b"0\r\n\r\n", 413)
                for count in ((1 << 16) + 1, 10**6)]
        found = self.judge(rows)
        grown = self.server.peak() - before
        self.check_memory(grown, 16, "chunks")
        return {**found, "grown_mib": round(grown, 1)}

    # ---- Ambiguity ----

    def smuggling(self):
        """Requests that two readers could take for different ones, and one behind each."""
        post, behind = HEAD.format("/health"), GET.format("/smuggled") + "\r\n"
        chunk = "1\r\nx\r\n0\r\n\r\n"
        requests = {
            "Transfer-Encoding: xchunked": post + "Transfer-Encoding: xchunked\r\n\r\n",
            "chunked, identity": post + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunk,
            "length and chunked": post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "two lengths": post + "Content-Length: 0\r\nContent-Length: 1\r\n\r\n",
            "a space before a colon": post + "Transfer-Encoding : chunked\r\n\r\n",
            "two hosts": post + "Host: other\r\n\r\n",
            "no host": "GET /health HTTP/1.1\r\n\r\n",
            "a folded field": post + "X: a\r\n b\r\n\r\n",
            "bare line feeds": "GET /health HTTP/1.1\nHost: h\n\n",
            "a bare line feed in a field": post + "X: a\nContent-Length: 1\r\n\r\n"}
        taken = []
        for name, first in requests.items():
            with self.server.attack() as client:
                client.sendall((first + behind).encode())
                client.shutdown(socket.SHUT_WR)
                text = client.rest()
            if text.count("HTTP/1.1 ") != 1 or not text.startswith("HTTP/1.1 400"):
                taken.append(name)
        self.check(not taken, f"taken: {taken}")
        # What is only unusual is answered, and so is the request behind it.
        for name, first in {
                "an absolute target": "GET http://other/health HTTP/1.1\r\nHost: h\r\n\r\n",
                "an empty line before": "\r\n" + GET.format("/health") + "\r\n"}.items():
            with self.server.attack() as client:
                client.sendall((first + behind).encode())
                client.shutdown(socket.SHUT_WR)
                text = client.rest()
            answered = text.startswith("HTTP/1.1 200") and text.count("HTTP/1.1 ") == 2
            self.check(answered, f"{name}: {text}")
        return {"requests": len(requests), "taken": taken}

    # ---- Work ----

    def large(self):
        """Large bodies keep their threads busy while one that is not so large asks."""
        def tokenize(words):
            return request("/tokenize",
                           json.dumps({"model": "h3-demo", "prompt": "word " * words}).encode())

        body = tokenize(LARGE // 5)
        count = self.size(4, 16)
        clients = []
        for _ in range(count):
            client = self.server.attack()
            client.sendall(body)
            clients.append(client)
        took, (status, _) = seconds(lambda: self.server.send(tokenize(14000)))
        for client in clients:
            client.close()
        self.check(status == 200, "a body of 70 KB was refused")
        return {"bodies": count, "bytes": len(body), "one_of_70_kb_s": round(took, 3)}

    def abandoned(self):
        """Clients that leave, in each phase, with bytes sent ahead, half-closed or reset."""
        draw = random.Random(1)
        count = self.size(60, 1000)
        prompts = ["word " * n for n in (1, 200, 20000)]

        def one(_):
            prompt = draw.choices(prompts, [10, 4, 1])[0]
            with contextlib.suppress(OSError), self.server.attack() as client:
                client.sendall(generate(prompt, 2000, draw.random() < 0.5))
                client.sendall(b"x" * draw.choice([0, 0, 100, 80 << 10, 300 << 10]))
                time.sleep(draw.choice([0, 0.01, 0.1]))
                if draw.random() < 0.3:
                    client.shutdown(socket.SHUT_WR)
                if draw.random() < 0.3:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(one, range(count)))
        return {"clients": count}

    def all(self, only):
        for attack in (self.silent, self.drip_headers, self.drip_bodies, self.slow_readers,
                       self.bodies, self.lengths, self.heads, self.chunks, self.smuggling,
                       self.large, self.abandoned):
            if only in (None, attack.__name__):
                self.run(attack)


def check_descriptors(hippodrome, models):
    """Without descriptors idle connections make room, and clients are served when some are free."""
    try:
        Server(hippodrome, models, files=200)
        raise AssertionError("it starts with fewer descriptors than connections")
    except RuntimeError as error:
        assert "file descriptors" in str(error), error
    with Server(hippodrome, models, "--admin", "127.0.0.1:0") as server:
        open_files = len(os.listdir(f"/proc/{server.pid}/fd"))
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (open_files + 20, most))
        clients = [server.attack() for _ in range(200)]
        took, (status, _) = seconds(lambda: server.get("/health"))
        assert status == 200, "silent sockets took all descriptors"
        for client in clients:
            client.close()
        assert server.get("/health")[0] == 200, server.said()
        assert server.stop() == 0
    print(f"descriptors: passed; with none left, /health takes {took:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = ["--kv-bytes", str(STATE_MIB * MIB)]
    if not arguments.report:
        options += ["--admin", "127.0.0.1:0"]
    with Server(arguments.hippodrome, arguments.models, *options) as server:
        attacks = Attacks(server, arguments)
        attacks.all(arguments.only)
        code = server.stop()
        assert code == 0 or arguments.report, (code, server.said())
    if not arguments.report and arguments.only is None:
        check_descriptors(arguments.hippodrome, arguments.models)
    http_peers.write_report(arguments.json, {"cores": os.cpu_count(), "attacks": attacks.found})
    print("measured" if arguments.report else "passed")


if __name__ == "__main__":
    sys.exit(main())
