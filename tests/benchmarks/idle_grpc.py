"""What thousands of gRPC connections cost that had a call once and stay: memory of each, and how much
slower streams get beside them.

  idle_grpc.py HIPPODROME MODEL_DIR REPORT.json [COUNT]

Takes two descriptors for each of COUNT (10,000) connections in the server, and one here: `ulimit -n` must
allow them.
"""

import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
from testing import raw_http2
from testing.hostile_peers import LIST, Hippodrome

GENERATE = "/hippodrome.v1.Generation/Generate"
ROUNDS = 3
STREAMS = 16
TOKENS = 400
# Field 2: the prompt; 4: max_tokens; 5: temperature; 11: ignore_eos.
REQUEST = b"\x12\x06It was" + b"\x20" + bytes([TOKENS & 127 | 128, TOKENS >> 7]) + b"\x2d" + bytes(4) + b"\x58\x01"


def crowd(address, count, pipe):
    """Connections, in a process of their own, each of which has had a call."""
    while pipe.recv() == "come":
        connections = []
        for i in range(count):
            connections.append(raw_http2.Connection(address, source=f"127.0.0.{2 + i % 8}"))
            assert connections[-1].call(LIST, b"") == 0, i
        pipe.send("here")
        pipe.recv()
        # They are served still.
        assert all(connection.call(LIST, b"") == 0 for connection in connections[::50])
        for connection in connections:
            connection.socket.close()
        pipe.send("gone")


def tokens_per_second(server):
    statuses = []

    def stream():
        with raw_http2.Connection(server.grpc) as connection:
            statuses.append(connection.call(GENERATE, REQUEST))

    begin = time.monotonic()
    threads = [threading.Thread(target=stream) for _ in range(STREAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * STREAMS, statuses
    return STREAMS * TOKENS / (time.monotonic() - begin)


def measure(server, count):
    pipe, far = multiprocessing.Pipe()
    process = multiprocessing.Process(target=crowd, args=(server.grpc, count, far))
    process.start()
    tokens_per_second(server)  # warms up
    alone, beside, grown = [], [], []
    for _ in range(ROUNDS):
        alone += [tokens_per_second(server) for _ in range(3)]
        before = server.resident()
        pipe.send("come")
        assert pipe.recv() == "here"
        grown.append((server.resident() - before) / count / 1024)
        time.sleep(1)
        beside += [tokens_per_second(server) for _ in range(3)]
        pipe.send("go")
        assert pipe.recv() == "gone"
        time.sleep(1)
    pipe.send("end")
    process.join()
    return {"connections": count, "streams": STREAMS, "rounds": ROUNDS,
            "kib_each": round(grown[0], 1), "kib_each_in_later_rounds": [round(kib, 1) for kib in grown[1:]],
            "tokens_per_second_alone": round(statistics.median(alone)),
            "tokens_per_second_beside": round(statistics.median(beside)),
            "loss_percent": round(100 * (1 - statistics.median(beside) / statistics.median(alone)), 1)}


def main(program, model, path, count="10000"):
    count = int(count)
    with tempfile.TemporaryDirectory() as work:
        server = Hippodrome(program, model, os.path.join(work, "log"), "--http-max-connections", "16",
                            "--grpc-max-connections", str(count + 50),
                            "--grpc-max-connections-per-address", str(count + 50))
        try:
            report = {"machine": platform.machine(), "cores": os.cpu_count(), **measure(server, count)}
        finally:
            server.process.kill()
            server.process.wait()
    print(json.dumps(report))
    with open(path, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
