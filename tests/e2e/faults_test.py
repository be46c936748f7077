"""Memory that runs out anywhere in a request, and a wall clock that jumps.

  faults_test.py HIPPODROME MODELS_DIR FAULT_SHIM [--long] [--json FILE]

FAULT_SHIM, loaded before the server, makes one allocation fail, and moves the wall clock. A client that cannot
be accepted must not keep out others. Where memory runs out later, the request ends with an error, or the server
says that it cannot go on, and ends: nobody waits for ever, and what goes on is whole. Clocks that jump must touch
nobody. --long tries each allocation of each kind of request, the short form some.
"""

import collections
import concurrent.futures
import json
import mmap
import os
import socket
import struct
import sys
import tempfile

from testing.grpc_messages import generate as grpc_generate, generate_message
from testing import http_peers
from testing.http_peers import Server, complete, generate, request, wait_until

FIRST_SITES = 4  # allocations of a connection, before its request is read
CANNOT_GO_ON = "out of memory where nothing less could be ended"
HEALTH = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"
REQUESTS = {
    "completion": generate("The end of the sea", 4),
    "stream": generate("The end of the sea", 4, True),
    "log probabilities": request("/v1/completions", json.dumps(
        {"model": "h3-demo", "prompt": ["The end", "of the sea"], "max_tokens": 3, "logprobs": 2,
         "echo": True, "n": 2, "seed": 1}).encode()),
    "encoder": request("/predict", b'{"inputs": [["a word"], ["two words"]]}'),
    "metrics": b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
}


class Faults:
    """The shim's side of a server."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.file = tempfile.NamedTemporaryFile()
        self.file.write(struct.pack("qq", 0, -1))
        self.file.flush()
        self.shared = mmap.mmap(self.file.fileno(), 16)
        self.environment = {"LD_PRELOAD": os.path.abspath(arguments.shim),
                            "HIPPODROME_FAULTS": self.file.name}

    def start(self):
        """A server whose faults these are."""
        self.fail(-1)
        os.environ.update(self.environment)
        try:
            return Server(self.arguments.hippodrome, self.arguments.models)
        finally:
            for name in self.environment:
                del os.environ[name]

    def jump(self, seconds):
        self.shared[:8] = struct.pack("q", seconds)

    def fail(self, allocation):
        """The one after so many; -1: none."""
        self.shared[8:] = struct.pack("q", allocation)

    def failed(self):
        return struct.unpack("q", self.shared[8:])[0] < 0


def outcome(client, data):
    """What a client sees: a status, or "closed"."""
    text = b""
    try:
        client.sendall(data)
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


def newcomer(server, data):
    try:
        with server.connect(20) as client:
            return outcome(client, data)
    except ConnectionError:
        return "closed"


def verdict(server, answer):
    """`answer`, or that the server ended, and said why; whoever comes next is served otherwise."""
    ended = answer == "closed" and wait_until(lambda: server.process.poll() is not None, 0.2)
    if ended or newcomer(server, REQUESTS["completion"]) != "200":
        assert wait_until(lambda: server.process.poll() == 1), (answer, server.said())
        assert CANNOT_GO_ON in server.said(), server.said()
        return "the server ended"
    assert answer in ("closed", "200", "500", "503"), answer
    return answer


def going(server, faults):
    """`server`, or another one where it has ended."""
    if server is not None and server.process.poll() is None:
        return server
    server = faults.start()
    server.base = server.load()
    return server


def accepting(server, faults):
    """What became of clients for whom one of the first allocations failed."""
    seen = []
    for site in range(FIRST_SITES):
        server = going(server, faults)
        faults.fail(site)
        answer = newcomer(server, REQUESTS["completion"])
        assert faults.failed()
        faults.fail(-1)
        seen.append(verdict(server, answer))
    return server, seen


def answering(server, faults, data, step):
    """What became of a request of which one allocation failed, for each `step`th until none is left."""
    seen = collections.Counter()
    site, survived = 0, 0
    while survived < 3:
        server = going(server, faults)
        with server.connect(20) as client:
            assert outcome(client, HEALTH) == "200"  # it is accepted
            faults.fail(site)
            answer = outcome(client, data)
            failed = faults.failed()
            faults.fail(-1)
        # Only where all allocations went well, and other threads make some as well.
        survived = 0 if failed else survived + 1
        if failed:
            seen[verdict(server, answer)] += 1
        if server.process.poll() is None:
            assert wait_until(lambda: server.load() == server.base), (site, answer, server.load())
        site += step
    return server, dict(seen)


def memory(faults, long):
    server, accepted = accepting(None, faults)
    seen = {}
    for name, data in REQUESTS.items():
        server, seen[name] = answering(server, faults, data, 1 if long else 97)
        print(name, seen[name], flush=True)
    server.__exit__()
    return {"clients_without_memory": accepted, "requests_without_memory": seen}


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
    arguments = http_peers.arguments("shim")
    faults = Faults(arguments)
    with faults.start() as server:
        report = {"clock": clock(server, faults)}
        assert server.get("/ready")[0] == 200
        code = server.stop()
        assert code == 0, (code, server.said())
    report.update(memory(faults, arguments.long))
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
