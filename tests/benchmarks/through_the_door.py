#!/usr/bin/env python3
"""Tokens per second that 32 clients get from two builds of the server, in turns.

  through_the_door.py BEFORE NOW MODELS_DIR [--pairs N] [--tokens N] [--json FILE]

Both servers run all the time, and one of them at a time works: each pair measures one after the other,
every second pair in the other order, and the figures are medians of the pairs' ratios: of tokens per
second, and of tokens per second that the server's processors worked, which other programs on the machine
disturb less. HTTP's client only counts bytes, in one thread; gRPC's is `NOW bench serve`.
"""

import argparse
import json
import os
import resource
import selectors
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
from testing.http_peers import Server, request

STREAMS = 32


def server_seconds(server):
    """Of processors, that it has taken."""
    with open(f"/proc/{server.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in
               (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


def http(server, tokens, streamed):
    """Tokens per second from the first request to the last byte."""
    body = json.dumps({"model": "h3-demo", "prompt": "The night was dark and the old man had come from the sea",
                       "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                       "stream": streamed}).encode()
    asked = request("/v1/completions", body, "Connection: close\r\n")
    selector = selectors.DefaultSelector()
    pieces = {}
    begin = time.monotonic()
    for _ in range(STREAMS):
        client = server.connect()
        client.sendall(asked)
        selector.register(client, selectors.EVENT_READ)
        pieces[client] = []
    left = STREAMS
    while left:
        for key, _ in selector.select(60):
            piece = key.fileobj.recv(1 << 16)
            pieces[key.fileobj].append(piece)
            if not piece:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                left -= 1
    end = time.monotonic()
    for answer in pieces.values():
        text = b"".join(answer)
        whole = text.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") if streamed else b'"usage"' in text
        assert text.startswith(b"HTTP/1.1 200") and whole and b'"length"' in text, text[:500]
    return STREAMS * tokens / (end - begin)


def grpc(client, server, tokens):
    with tempfile.NamedTemporaryFile("r") as report:
        subprocess.run([client, "bench", "serve", "--grpc", "%s:%d" % server.address("grpc"),
                        "--model", "h3-demo", "--concurrency", str(STREAMS),
                        "--requests", str(STREAMS), "--prompt", "16", "--tokens", str(tokens),
                        "--json", report.name],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return next(result["value"] for result in json.load(report)["results"]
                    if result["name"] == "output_tokens_per_second")


def measure(server, work):
    """Tokens per second, and what client and server took of processors meanwhile."""
    wall, own, its = time.monotonic(), client_seconds(), server_seconds(server)
    rate = work(server)
    wall, own, its = time.monotonic() - wall, client_seconds() - own, server_seconds(server) - its
    return {"tokens_per_second": round(rate, 1), "tokens_per_processor_second": round(rate * wall / its, 1),
            "client_processors": round(own / wall, 3), "server_processors": round(its / wall, 3)}


def ratios(pairs, field):
    found = sorted(pair["now"][field] / pair["before"][field] for pair in pairs)
    return {"median": round(statistics.median(found), 4),
            "middle_half": [round(found[len(found) // 4], 4), round(found[-1 - len(found) // 4], 4)]}


def summary(pairs):
    middle = {side: {field: round(statistics.median(pair[side][field] for pair in pairs), 3)
                     for field in pairs[0][side]} for side in ("before", "now")}
    return {"now_over_before": {field: ratios(pairs, field) for field in
                                ("tokens_per_second", "tokens_per_processor_second")}, **middle}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("models")
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    works = {"http, streamed": lambda server: http(server, arguments.tokens, True),
             "http, whole": lambda server: http(server, arguments.tokens, False),
             "grpc, streamed": lambda server: grpc(arguments.now, server, arguments.tokens)}
    servers = {"before": Server(arguments.before, arguments.models),
               "now": Server(arguments.now, arguments.models)}
    pairs = {name: [] for name in works}
    for name, work in works.items():
        for server in servers.values():
            work(server)  # to warm up
        for turn in range(arguments.pairs):
            order = list(servers.items())[::1 if turn % 2 == 0 else -1]
            pairs[name].append({side: measure(server, work) for side, server in order})
    for server in servers.values():
        server.stop()
    report = {"command": " ".join(["through_the_door.py", *(os.path.basename(a) for a in sys.argv[1:])]),
              "streams": STREAMS, "tokens_of_each": arguments.tokens, "pairs": arguments.pairs,
              "results": {name: summary(of) for name, of in pairs.items()}}
    text = json.dumps(report, indent=1)
    print(text)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
