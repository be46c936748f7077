"""gRPC among hostile peers: the real program. haproxy_test.py has the same behind HAProxy.

  hostile_grpc_test.py HIPPODROME MODEL_DIR
  hostile_grpc_test.py HIPPODROME MODEL_DIR --long REPORT.json [HAPROXY CONFIG]

The short form takes seconds. The long form floods over 10 connections, behind HAProxy for 10 seconds each
and directly for 5, each time a new server, and writes what it measured; other versions may be given to it.
"""

import contextlib
import functools
import json
import os
import pathlib
import platform
import resource
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import hostile_peers, raw_http2
from testing.hostile_peers import ALLOWED, LIST, HAProxy, Hippodrome

PROGRAM, MODEL = sys.argv[1:3]
TOKENIZE = "/hippodrome.v1.Generation/Tokenize"
WATCH = "/grpc.health.v1.Health/Watch"
MIB = 1 << 20
UNIMPLEMENTED = 12


class HostileGrpcTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.server = self.serve()

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0)
        self.work.cleanup()

    def serve(self):
        return Hippodrome(PROGRAM, MODEL, os.path.join(self.work.name, "log"))

    def grown(self, what):
        """By how much the server's memory grows, at the most, while `what` is done."""
        self.server.forget_peak()
        before = self.server.resident()
        what()
        return self.server.peak() - before

    def test_a_packed_message_is_not_unpacked(self):
        bomb = raw_http2.zip_bomb(500 * MIB)

        def said():
            with raw_http2.Connection(self.server.grpc) as connection:
                status = connection.call(TOKENIZE, bomb, compress=True, grpc_encoding="gzip")
            self.assertEqual(status, UNIMPLEMENTED)

        def unsaid():
            with raw_http2.Connection(self.server.grpc) as connection:
                status = connection.call(TOKENIZE, bomb, compress=True)
            self.assertNotEqual(status, 0)

        self.assertLess(self.grown(said), 16 * MIB)
        self.assertLess(self.grown(unsaid), 16 * MIB)

    def test_no_descriptors_for_a_while(self):
        pid = self.server.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 20, before[1]))
        silent = [socket.create_connection(self.server.grpc.split(":"), 5) for _ in range(30)]
        self.assertFalse(hostile_peers.answers(self.server.grpc, timeout=1))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        self.assertTrue(hostile_peers.answers(self.server.grpc))
        for connection in silent:
            connection.close()

    def test_too_few_descriptors_are_said_at_the_start(self):
        few = subprocess.run(
            [PROGRAM, "serve", "--model", MODEL, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (500, 500)),
            capture_output=True, text=True)
        self.assertNotEqual(few.returncode, 0)
        self.assertIn("this process may have 500", few.stderr)

    def test_an_open_watch_does_not_keep_the_server(self):
        with raw_http2.Connection(self.server.grpc) as connection:
            watch = connection.open(WATCH)
            statuses = (content for kind, _, stream, content
                        in connection.sending(watch, raw_http2.message(b""))
                        if kind == raw_http2.DATA and stream == watch)
            # Serving, then not serving: field 1 of the messages.
            self.assertEqual(next(statuses), raw_http2.message(b"\x08\x01"))
            self.assertEqual(self.server.stop(), 0)
            self.assertEqual(next(statuses), raw_http2.message(b"\x08\x02"))
        self.server = self.serve()

    def test_streams_that_are_reset_anywhere_leave_the_others(self):
        data = raw_http2.message(b"\x12\x04text")  # field 2
        reset = functools.partial(raw_http2.frame, raw_http2.RST_STREAM, 0,
                                  payload=raw_http2.CANCEL)
        with raw_http2.Connection(self.server.grpc) as connection:
            for sent in (b"", data[:7], data):
                stream = connection.open(TOKENIZE)
                connection.send(raw_http2.frame(raw_http2.DATA, 0, stream, sent) if sent else b"")
                connection.send(reset(stream=stream))
            stream = connection.open(TOKENIZE)
            connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, stream, data)
                            + reset(stream=stream))
            self.assertEqual(connection.call(TOKENIZE, data[5:]), 0)
            self.assertEqual(connection.call(LIST, b""), 0)

    def test_a_goaway_of_the_client_does_not_end_its_call(self):
        with raw_http2.Connection(self.server.grpc) as connection:
            stream = connection.open(LIST)
            connection.send(raw_http2.frame(raw_http2.GOAWAY, payload=bytes(8))
                            + raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, stream,
                                              raw_http2.message(b"")))
            ends = (content for kind, flags, where, content in connection.frames()
                    if where == stream and kind == raw_http2.HEADERS
                    and flags & raw_http2.END_STREAM)
            self.assertIn(b"grpc-status\x010", next(ends))

    def test_a_ping_is_answered(self):
        with raw_http2.Connection(self.server.grpc) as connection:
            connection.send(raw_http2.frame(raw_http2.PING, payload=b"are you?"))
            answers = (content for kind, flags, _, content in connection.frames()
                       if kind == raw_http2.PING and flags & raw_http2.ACK)
            self.assertEqual(next(answers), b"are you?")

    def test_it_recovers_from_every_flood(self):
        for name in raw_http2.FLOODS:
            with self.subTest(name):
                found = hostile_peers.measure(self.server, self.server.grpc, name, connections=2,
                                              seconds=1, allowed=ALLOWED)
                self.assertGreater(found["frames"], 0)
                self.assertTrue(found["answered"], found)
                self.assertEqual(found["neighbour_failures"], 0, found)
                self.assertLess(found["resident_after"] - found["resident_before"], ALLOWED, found)


# ---- The long form ----


def packed_message(server):
    """By how much memory grows for a message of half a megabyte that is 500 MiB unpacked."""
    server.forget_peak()
    before = server.resident()
    with raw_http2.Connection(server.grpc) as connection:
        bomb = raw_http2.zip_bomb(500 * MIB)
        status = connection.call(TOKENIZE, bomb, compress=True, grpc_encoding="gzip")
    return {"fault": "packed message", "bytes": len(bomb), "status": status,
            "grown_bytes": server.peak() - before}


def no_descriptors(server):
    """Whether calls are answered ten seconds after there are descriptors again."""
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{server.pid}/fd"))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used + 20, before[1]))
    silent = [socket.create_connection(server.grpc.split(":"), 5) for _ in range(30)]
    time.sleep(1)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    for connection in silent:
        connection.close()
    return {"fault": "no descriptors", "answered": hostile_peers.answers(server.grpc, timeout=10)}


@contextlib.contextmanager
def fresh():
    with tempfile.TemporaryDirectory() as work:
        server = Hippodrome(PROGRAM, MODEL, os.path.join(work, "log"))
        yield server, work
        server.process.kill()
        server.process.wait()


def long_form(path, haproxy=None, config=None):
    rows = []

    def row(found):
        rows.append(found)
        print(json.dumps(found), flush=True)

    for fault in packed_message, no_descriptors:
        with fresh() as (server, _):
            row(fault(server))
    for name in raw_http2.FLOODS if haproxy else []:
        with fresh() as (server, work):
            proxy = HAProxy(haproxy, config, [server], os.path.join(work, "proxy"))
            before = proxy.resident()
            found = hostile_peers.measure(server, proxy.grpc, name, 10, 10, ALLOWED)
            row({"where": "behind HAProxy", **found, "proxy_grown_bytes": proxy.resident() - before})
            proxy.stop()
    for name in raw_http2.FLOODS:
        with fresh() as (server, _):
            row({"where": "direct", **hostile_peers.measure(server, server.grpc, name, 10, 5, ALLOWED)})
    with open(path, "w") as file:
        json.dump({"machine": platform.machine(), "cores": os.cpu_count(), "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if sys.argv[3:4] == ["--long"]:
        long_form(*sys.argv[4:])
    else:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
