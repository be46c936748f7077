#!/usr/bin/env python3
"""What logs, metrics and keys cost: requests per second of a build without them against one that has them on.

  operations_cost.py BEFORE NOW MODELS_DIR [--pairs N] [--json FILE] [--bare]

BEFORE serves as it is; NOW with API keys, an access log, a log of level info, and a scrape of /metrics
each second. --bare: NOW too serves as it is, which tells what the build alone changes. Both servers run all the time and
one of them at a time works: each pair measures one after the other, every second pair in the other order,
and the figures are medians of the pairs' ratios: of requests per second, and of requests per second that the server's
processors worked, which other programs on the machine disturb less. The client is `NOW bench serve`, in a closed loop
of 32.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
from testing.http_peers import Server, send, write_report

CLIENTS = 32
STREAMS = ["--model", "h3-demo", "--prompt", "16", "--tokens", "256", "--requests", "64"]
SMALL = ["--task", "predict", "--model", "bigs-demo", "--prompt", "4", "--requests", "512"]
ONE_TOKEN = ["--model", "h3-demo", "--prompt", "4", "--tokens", "1", "--requests", "2048"]
WORKS = {"http, streams": ("http", STREAMS), "grpc, streams": ("grpc", STREAMS),
         "http, small": ("http", ONE_TOKEN), "grpc, small": ("grpc", ONE_TOKEN),
         "http, encoder": ("http", SMALL), "grpc, encoder": ("grpc", SMALL)}


class Side:
    """A server, and what its clients send."""

    def __init__(self, program, models, serving=(), calling=(), key=None):
        self.server = Server(program, models, *serving)
        self.calling, self.key = list(calling), key
        self.stopped = threading.Event()
        self.scrapes = 0
        self.scraper = threading.Thread(target=self.scrape)
        if key:
            self.scraper.start()

    def scrape(self):
        asked = f"GET /metrics HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {self.key}\r\n\r\n".encode()
        while not self.stopped.wait(1):
            status, _ = send(self.server.http, asked)
            assert status == 200, status
            self.scrapes += 1

    def work(self, client, protocol, load):
        with tempfile.NamedTemporaryFile("r") as report:
            subprocess.run([client, "bench", "serve", "--" + protocol, "%s:%d" % self.server.address(protocol),
                            "--concurrency", str(CLIENTS), *load, *self.calling, "--json", report.name],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            found = json.load(report)
        point = found["points"][0]
        assert point["answered"] == point["requests"], point
        return point

    def measure(self, client, protocol, load):
        busy = self.server.processor_seconds()
        point = self.work(client, protocol, load)
        busy = self.server.processor_seconds() - busy
        return {"requests_per_second": round(point["requests"] / point["seconds"], 2),
                "requests_per_processor_second": round(point["requests"] / busy, 2)}

    def stop(self):
        self.stopped.set()
        if self.key:
            self.scraper.join()
        self.server.stop()


def ratios(pairs, field):
    found = sorted(pair["now"][field] / pair["before"][field] for pair in pairs)
    return {"median": round(statistics.median(found), 4),
            "middle_half": [round(found[len(found) // 4], 4), round(found[-1 - len(found) // 4], 4)]}


def summary(pairs):
    middle = {side: {field: statistics.median(pair[side][field] for pair in pairs) for field in pairs[0][side]}
              for side in ("before", "now")}
    return {"now_over_before": {field: ratios(pairs, field) for field in pairs[0]["now"]}, **middle}


def new_side(given, folder):
    if given.bare:
        return Side(given.now, given.models)
    made = subprocess.run([given.now, "key", "new", "--name", "client"], capture_output=True, text=True, check=True)
    secret, entry = made.stdout.splitlines()
    keys, key = os.path.join(folder, "keys.json"), os.path.join(folder, "key")
    with open(keys, "w") as file:
        json.dump({"keys": [json.loads(entry)]}, file)
    with open(key, "w") as file:
        file.write(secret + "\n")
    os.chmod(keys, 0o600)  # else the server does not take it
    serving = ["--api-keys", keys, "--access-log", os.path.join(folder, "access.log"), "--log-level", "info"]
    return Side(given.now, given.models, serving, ["--api-key-file", key], secret)


def main():
    parser = argparse.ArgumentParser()
    for place in ("before", "now", "models"):
        parser.add_argument(place)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        sides = {"before": Side(given.before, given.models), "now": new_side(given, folder)}
        pairs = {name: [] for name in WORKS}
        try:
            for name, (protocol, load) in WORKS.items():
                for side in sides.values():
                    side.work(given.now, protocol, load)  # to warm up
                for turn in range(given.pairs):
                    order = list(sides.items())[::1 if turn % 2 == 0 else -1]
                    pairs[name].append({side: of.measure(given.now, protocol, load) for side, of in order})
            scrapes = sides["now"].scrapes
            lines = 0
            if not given.bare:
                with open(os.path.join(folder, "access.log")) as file:
                    lines = sum(1 for _ in file)
        finally:
            for side in sides.values():
                side.stop()
    report = {"command": " ".join(["operations_cost.py", *(os.path.basename(a) for a in sys.argv[1:])]),
              "clients": CLIENTS, "pairs": given.pairs, "scrapes": scrapes, "lines_of_the_access_log": lines,
              "results": {name: summary(of) for name, of in pairs.items()}}
    print(json.dumps(report, indent=1))
    write_report(given.json, report)


if __name__ == "__main__":
    sys.exit(main())
