"""Memory that runs out while a client is accepted, and a wall clock that jumps.

  faults_test.py HIPPODROME MODELS_DIR FAULT_SHIM [--json FILE]

FAULT_SHIM, loaded before the server, makes one allocation fail, and moves the wall clock. A client that cannot
be accepted must not keep out others; clocks that jump must touch nobody.
"""

import argparse
import concurrent.futures
import json
import mmap
import os
import socket
import struct
import sys
import tempfile

from grpc_messages import generate as grpc_generate, generate_message
from http_peers import Server, complete, generate, wait_until

FIRST_SITES = 4  # allocations of a connection, before its request is read


class Faults:
    """The shim's side of a server, in whose environment it must be created."""

    def __init__(self, shim):
        self.file = tempfile.NamedTemporaryFile()
        self.file.write(struct.pack("qq", 0, -1))
        self.file.flush()
        self.shared = mmap.mmap(self.file.fileno(), 16)
        self.environment = {"LD_PRELOAD": os.path.abspath(shim), "HIPPODROME_FAULTS": self.file.name}

    def jump(self, seconds):
        self.shared[:8] = struct.pack("q", seconds)

    def fail(self, allocation):
        """The one after so many; -1: none."""
        self.shared[8:] = struct.pack("q", allocation)

    def failed(self):
        return struct.unpack("q", self.shared[8:])[0] < 0


def start(arguments, faults):
    os.environ.update(faults.environment)
    try:
        return Server(arguments.hippodrome, arguments.models)
    finally:
        for name in faults.environment:
            del os.environ[name]


def outcome(server, data):
    """What a client sees: a status, or "closed"."""
    text = b""
    with server.connect(20) as client:
        client.sendall(data)
        try:
            while b"\r\n\r\n" not in text or not complete(text):
                piece = client.recv(65536)
                if not piece:
                    return "closed"
                text += piece
        except ConnectionError:
            return "closed"
        except socket.timeout:
            raise AssertionError("the client waits for ever") from None
    return text[9:12].decode()


def memory(server, faults):
    """What the client of each of the first allocations sees; the next client is served."""
    data = generate("The end of the sea", 4)
    seen = []
    for site in range(FIRST_SITES):
        faults.fail(site)
        seen.append(outcome(server, data))
        assert faults.failed() and server.process.poll() is None, server.said()
        faults.fail(-1)
        assert outcome(server, data) == "200"
    return seen


def clock(server, faults):
    """Streams that are live while the clock jumps there and back."""
    def over_http():
        return server.send(generate("The end of the sea", 300, True))[1].count('"choices"')

    def over_grpc():
        return grpc_generate(server, generate_message("The end of the sea", 300, 1))

    asks = [over_http, over_grpc]
    alone = [ask() for ask in asks]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for seconds in (3600, -3600, 0):
            answers = [pool.submit(asks[i % 2]) for i in range(8)]
            assert wait_until(lambda: server.running() > 0)
            faults.jump(seconds)
            assert server.get("/ready")[0] == 200
            for i, answer in enumerate(answers):
                assert answer.result() == alone[i % 2], f"{i} after {seconds} s"
    return {"streams": 24, "jumps_s": [3600, -7200, 3600]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("shim")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    faults = Faults(arguments.shim)
    with start(arguments, faults) as server:
        report = {"clock": clock(server, faults), "clients_without_memory": memory(server, faults)}
        assert server.get("/ready")[0] == 200
        code = server.stop()
        assert code == 0, (code, server.said())
    print(json.dumps(report, indent=1))
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
