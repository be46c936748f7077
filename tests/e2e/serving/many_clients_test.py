"""Many clients of HTTP that mean well: health checks without end, and thousands of idle connections beside
streams that run.

  many_clients_test.py HIPPODROME MODELS_DIR [--long] [--sanitized] [--json FILE]

The short form takes seconds and is a test. --long needs h2load and wrk (Debian's nghttp2-client and wrk),
and as many descriptors as it has connections. --sanitized: the program's memory says nothing.
"""

import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import resource
import selectors
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers
from testing.http_peers import Connection, Server, generate, hostile, percentile, wait_until

ACTIVE = 64
HEALTH = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"
# Of the server, for an idle connection.
MOST_KIB = 64


# ---- Health checks ----


def checks(server, count):
    """On few connections that stay."""
    clients = [server.connect() for _ in range(16)]
    failed, times = 0, []
    for _ in range(count // len(clients)):
        for client in clients:
            begin = time.monotonic()
            client.sendall(HEALTH)
            failed += client.answer()[0] != 200
            times.append(1000 * (time.monotonic() - begin))
    for client in clients:
        client.close()
    assert failed == 0, f"{failed} of {len(times)} checks failed"
    times.sort()
    return {"requests": len(times), "failed": failed, "p99_ms": round(percentile(times, 0.99), 3)}


def h2load(server, count):
    """A million checks and more."""
    with tempfile.NamedTemporaryFile("r") as log:
        url = "http://%s:%d/health" % server.http
        said = subprocess.run(["h2load", "--h1", "-n", str(count), "-c", "16", "-t", "1",
                               "--log-file", log.name, url],
                              check=True, capture_output=True, text=True).stdout
        rows = [line.split("\t") for line in log]
    times = sorted(int(row[2]) / 1000 for row in rows)
    failed = count - sum(row[1] == "200" for row in rows)
    assert failed == 0, said
    rate = float(re.search(r"([\d.]+) req/s", said)[1])
    return {"tool": "h2load --h1 -c 16", "path": "/health", "requests": len(rows), "failed": failed,
            "per_second": round(rate), "p50_ms": round(percentile(times, 0.5), 3),
            "p99_ms": round(percentile(times, 0.99), 3), "slowest_ms": round(times[-1], 3)}


def wrk(server, duration):
    url = "http://%s:%d/v1/models" % server.http
    said = subprocess.run(["wrk", "-t", "1", "-c", "16", "-d", str(duration), "--latency", url],
                          check=True, capture_output=True, text=True).stdout
    assert "Socket errors" not in said and "Non-2xx" not in said, said
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()
    return {"tool": "wrk -c 16", "path": "/v1/models", "seconds": duration,
            "requests": int(re.search(r"(\d+) requests in", said)[1]), "failed": 0,
            "p99_ms": round(float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit], 3)}


# ---- Idle connections ----


def _crowd(where, count, pipe):
    while pipe.recv() == "come":
        clients = []
        for first in range(0, count, ACTIVE):
            some = [Connection(where, source=hostile(i % 8))
                    for i in range(first, min(first + ACTIVE, count))]
            for client in some:
                client.sendall(generate("a", 1, stream=True))
            clients += some
            assert all(client.answer()[0] == 200 for client in some)
        pipe.send("idle")
        pipe.recv()
        # They are clients still.
        for client in clients[::50]:
            client.sendall(HEALTH)
            assert client.answer()[0] == 200
        for client in clients:
            client.close()
        pipe.send("gone")


class Crowd:
    """`count` connections in a process of their own, each of which has had a stream and waits."""

    def __init__(self, server, count):
        self.server = server
        self.pipe, far = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_crowd, args=(server.http, count, far))
        self.process.start()
        far.close()

    @contextlib.contextmanager
    def here(self):
        self.pipe.send("come")
        assert self.pipe.recv() == "idle"
        yield
        self.pipe.send("go")
        assert self.pipe.recv() == "gone"
        gauge = 'hippodrome_http_connections{listener="main"}'
        assert wait_until(lambda: self.server.metrics()[gauge] <= 1)

    def end(self):
        self.pipe.send("end")
        self.process.join()


def throughput(server, tokens):
    """Tokens per second of streams that all run at once."""
    selector = selectors.DefaultSelector()
    begin = time.monotonic()
    for _ in range(ACTIVE):
        client = server.connect()
        client.sendall(generate("a", tokens, stream=True))
        client.setblocking(False)
        selector.register(client, selectors.EVENT_READ, bytearray())
    while selector.get_map():
        for key, _ in selector.select():
            key.data.extend(key.fileobj.recv(65536) or b"cut off")
            if key.data.endswith((b"0\r\n\r\n", b"cut off")):
                selector.unregister(key.fileobj)
                key.fileobj.close()
                assert b"data: [DONE]" in key.data, bytes(key.data[-500:])
    return ACTIVE * tokens / (time.monotonic() - begin)


def idle(server, sanitized, count, tokens, rounds):
    crowd = Crowd(server, count)
    throughput(server, tokens)  # what is allocated once
    before = server.resident()
    with crowd.here():
        kib = 1024 * (server.resident() - before) / count
    alone, beside = [], []
    for _ in range(rounds):
        alone.append(throughput(server, tokens))
        with crowd.here():
            beside.append(throughput(server, tokens))
    crowd.end()
    assert sanitized or kib < MOST_KIB, f"an idle connection takes {kib:.1f} KiB"
    evicted = server.metrics()['hippodrome_http_connections_evicted_total{listener="main"}']
    assert evicted == 0, f"{evicted} were closed"
    loss = 1 - statistics.median(beside) / statistics.median(alone)
    return {"idle": count, "kib_each": round(kib, 1), "active_streams": ACTIVE,
            "tokens_per_second_alone": [round(rate) for rate in alone],
            "tokens_per_second_beside": [round(rate) for rate in beside],
            "loss_percent": round(100 * loss, 1)}


def main():
    arguments = http_peers.arguments("--sanitized")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    count = 10000 if arguments.long else 1000
    found = []

    def run(check, *more):
        found.append({"check": check.__name__, **check(server, *more)})
        print(json.dumps(found[-1]), flush=True)

    places = str(count + 200)
    with Server(arguments.hippodrome, arguments.models, "--http-max-connections", places,
                "--http-max-connections-per-address", places) as server:
        run(checks, 4000)
        if arguments.long:
            run(h2load, 1000000)
            run(wrk, 60)
        run(idle, arguments.sanitized, count, *((400, 8) if arguments.long else (50, 1)))
        code = server.stop()
        assert code == 0, (code, server.said())
    http_peers.write_report(arguments.json, {"cores": os.cpu_count(), "checks": found})
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
