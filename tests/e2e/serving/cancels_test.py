"""Clients that leave, in every phase of every kind of call, over both transports: all that they held is
given back, and others' answers stay the same to the byte.

  cancels_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

The short form, a test, has a few hundred; --long has 10,000.
"""

import collections
import concurrent.futures
import contextlib
import json
import pathlib
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.grpc_messages import (EMBED, GENERATE, SCORE, address_of, embed_message, generate,
                           generate_message, open_call, score_message)
from testing import http_peers
from testing.http_peers import Connection, Server, request, seconds, wait_until
from testing import raw_http2

SLOTS = 8  # of the decoder; more clients than that wait
CLIENTS = 24
BYSTANDER = "127.0.0.3"
LAST = "the last write"


# ---- Bystanders


def over_grpc(server, prompt):
    return generate(server, generate_message(prompt, 24, 2), BYSTANDER)


def over_http(server, prompt):
    body = json.loads(completion(prompt, 24, True))
    with Connection(server.http, source=BYSTANDER) as client:
        client.sendall(request("/v1/completions", json.dumps({**body, "logprobs": 2}).encode()))
        events = client.answer()[1].split("data: {")[1:]
    answers = [json.loads("{" + event.split("\n", 1)[0])["choices"][0] for event in events]
    return ("".join(answer["text"] for answer in answers),
            [answer["logprobs"]["token_logprobs"] for answer in answers if answer["logprobs"]])


class Bystander(threading.Thread):
    """Asks the same things again and again, of another address than those who leave."""

    def __init__(self, server, ask):
        super().__init__()
        self.server, self.ask = server, ask
        self.prompts = [f"The {word} of the sea was" for word in ("king", "end", "old man", "storm")]
        self.alone = [self.answer(prompt) for prompt in self.prompts]
        self.asked = 0
        self.differ = []
        self.ended = threading.Event()

    def answer(self, prompt):
        answer = self.ask(self.server, prompt)
        tokens = answer[1] if isinstance(answer[1], bytes) else sum(answer[1], [])
        return (answer[0], tokens, *answer[2:])

    def run(self):
        while not self.ended.is_set():
            i = self.asked % len(self.prompts)
            try:
                answer = self.answer(self.prompts[i])
            except (OSError, ValueError) as error:
                answer = error
            self.asked += 1
            if answer != self.alone[i]:
                self.differ.append((self.alone[i], answer))
            self.ended.wait(0.02)

    def stop(self):
        self.ended.set()
        self.join()


# ---- Those who leave


def completion(prompt, tokens, stream, logprobs=None, echo=False):
    body = {"model": "h3-demo", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
            "stream": stream, "ignore_eos": True, "echo": echo}
    if logprobs is not None:
        body["logprobs"] = logprobs
    return json.dumps(body).encode()


class Leaver:
    """One call, and how its client leaves it."""

    KINDS = ("HTTP, whole", "HTTP, streamed", "HTTP, encoder", "gRPC, stream", "gRPC, unary",
             "gRPC, encoder")
    PHASES = ("queue", "prefill", "decode", LAST)

    def __init__(self, server, seed):
        draw = self.draw = random.Random(seed)
        self.server = server
        self.kind = self.KINDS[seed % len(self.KINDS)]
        self.phase = draw.choice(self.PHASES)
        self.prompt = "word " * (draw.randrange(2000, 6000) if self.phase == "prefill" else 20)

    def leave(self):
        with contextlib.suppress(OSError):
            if self.kind.startswith("HTTP"):
                self.leave_http()
            else:
                self.leave_grpc()

    def wait(self):
        """Until the phase, more or less: in the end the server says where it was."""
        most = {"queue": 0.01, "prefill": 0.4, "decode": 0.3, LAST: 0.2}[self.phase]
        time.sleep(self.draw.random() * most)

    def leave_http(self):
        window = 4096 if self.phase == LAST else None  # which the answer does not fit into
        with Connection(self.server.http, window=window) as client:
            client.sendall(self.http_request())
            ahead = self.draw.choice([0, 0, 0, 100, 80 << 10, 300 << 10])
            client.sendall(b"x" * ahead)
            half = self.draw.random() < 0.25
            if half:
                client.shutdown(socket.SHUT_WR)
            if self.phase == LAST:
                client.recv(256)
            if self.phase == "decode" and self.kind == "HTTP, streamed":
                for _ in range(self.draw.randrange(1, 20)):
                    client.recv(512)
            self.wait()
            if self.draw.random() < 0.3:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def http_request(self):
        if self.kind == "HTTP, encoder":
            inputs = ["a word"] * self.draw.randrange(1, 200)
            body = json.dumps({"model": "bigs-demo", "input": inputs}).encode()
            return request("/v1/embeddings", body)
        stream = self.kind == "HTTP, streamed"
        if self.phase != LAST:
            return request("/v1/completions", completion(self.prompt, 2000, stream))
        return request("/v1/completions", completion("word " * 500, 40, stream, 5, True))

    def leave_grpc(self):
        with raw_http2.Connection(address_of(self.server), 30) as connection:
            calls = [self.open(connection) for _ in range(self.draw.choice([1, 1, 1, 2]))]
            if self.phase == LAST or self.phase == "decode":
                self.read_some(connection)
            self.wait()
            way = self.draw.choice(["close", "reset", "reset stream", "half-close"])
            if way == "reset stream":
                for call in calls:
                    connection.send(raw_http2.frame(raw_http2.RST_STREAM, 0, call, raw_http2.CANCEL))
                time.sleep(0.01)
            elif way == "half-close":
                connection.socket.shutdown(socket.SHUT_WR)
                time.sleep(0.01)
            elif way == "reset":
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                             struct.pack("ii", 1, 0))

    def open(self, connection):
        if self.kind == "gRPC, encoder":
            return open_call(connection, EMBED, embed_message(self.draw.randrange(1, 200)))
        if self.kind == "gRPC, unary":
            return open_call(connection, SCORE, score_message(self.prompt, 4))
        # More than fits into the window that a connection begins with, which nobody moves.
        if self.phase == LAST:
            return open_call(connection, GENERATE, generate_message("word", 400, 20))
        return open_call(connection, GENERATE, generate_message(self.prompt, 2000))

    def read_some(self, connection):
        """Until data has come, or the answer to a call that was quick."""
        left = self.draw.randrange(1, 20) if self.kind == "gRPC, stream" else 1
        for kind, flags, _, _ in connection.frames():
            if kind == raw_http2.SETTINGS and not flags & raw_http2.ACK:
                connection.send(raw_http2.frame(raw_http2.SETTINGS, raw_http2.ACK))
            left -= kind == raw_http2.DATA
            if left == 0 or (kind == raw_http2.HEADERS and flags & raw_http2.END_STREAM):
                return


def storm(server, count):
    """`count` clients leave. How many of each (kind, phase) that was drawn."""
    leavers = [Leaver(server, seed) for seed in range(count)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(Leaver.leave, leavers))
    return collections.Counter(f"{leaver.kind}; {leaver.phase}" for leaver in leavers)


def gauges(server):
    """All that goes up and down with requests; the bystanders of this test must be silent."""
    connections = ("hippodrome_grpc_connections", 'hippodrome_http_connections{listener="main"}')
    metrics = server.metrics()
    return {**server.load(), **{name: metrics[name] for name in connections}}


def idle(found):
    return all(value == (SLOTS if 'state="free"' in name else 0) for name, value in found.items())


def cancelled(server):
    """Where the server says that requests were given up."""
    return {name: value for name, value in server.metrics().items()
            if name.startswith("hippodrome_cancelled_total")}


def check(server, count):
    bystanders = [Bystander(server, ask) for ask in (over_http, over_grpc)]
    storm(server, CLIENTS)  # so that the memory is there that a server at work keeps
    assert wait_until(lambda: idle(gauges(server))), gauges(server)
    base = gauges(server)
    resident = server.resident()
    for bystander in bystanders:
        bystander.start()
    took, drawn = seconds(lambda: storm(server, count))
    for bystander in bystanders:
        bystander.stop()
    back, returned = seconds(lambda: wait_until(lambda: gauges(server) == base))
    assert returned, f"{gauges(server)} is not {base}"
    told = cancelled(server)
    for phase in ("queue", "prefill", "decode"):
        name = f'hippodrome_cancelled_total{{model="h3-demo",where="{phase}"}}'
        assert told.get(name, 0) > 0, f"nobody left in {phase}: {told}"
    for bystander in bystanders:
        assert bystander.asked > 0 and not bystander.differ, bystander.differ[:1]
    return {"cancels": count, "seconds": round(took, 1), "drawn": dict(sorted(drawn.items())),
            "cancelled": told, "gauges": base, "gauges_back_after_seconds": round(back, 3),
            "bystanders_answers": sum(b.asked for b in bystanders),
            "bystanders_answers_that_differ": sum(len(b.differ) for b in bystanders),
            "resident_grew_by_mib": round(server.resident() - resident)}


def main():
    arguments = http_peers.arguments()
    with Server(arguments.hippodrome, arguments.models, "--admin", "127.0.0.1:0",
                "--max-sequences", str(SLOTS), "--pad-to", "none") as server:
        report = check(server, 10000 if arguments.long else 360)
        code = server.stop()
        assert code == 0, (code, server.said())
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
