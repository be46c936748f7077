"""A greedy client that asks for ten times what the server can do, and polite ones beside it.

  overload_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

Every stream that is accepted has the right text, whoever is refused is told when to try again, and the
polite ones are served: that is asserted. --long does it for five minutes, and reports how long things
took. The greedy client has lower priority than the server and everything that is measured, for all share
the machine's processors.
"""

import collections
import json
import os
import pathlib
import resource
import selectors
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers
from testing.http_peers import Beside, Connection, Server, percentile, request, seconds, wait_until

GREEDY, TOKENS, CONNECTIONS = "127.0.0.9", 64, 320
POLITE = [f"127.0.0.{11 + i}" for i in range(4)]
PROMPTS = [f"The {word} of the sea was" for word in ("king", "end", "old man", "storm")]
LONG_PROMPT = "It was a dark night, and the old man who had come from the sea sat down. " * 12


def asked(prompt, tokens, fields=""):
    return request("/v1/completions", json.dumps({
        "model": "h3-demo", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True,
        "ignore_eos": True}).encode(), fields)


def text_of(answer):
    events = answer.split("data: {")[1:]
    return "".join(json.loads("{" + event.split("\n", 1)[0])["choices"][0]["text"] for event in events)


def times(values):
    """In milliseconds."""
    values = sorted(1000 * value for value in values)
    if not values:
        return {"count": 0}
    return {"count": len(values), "p50": round(percentile(values, 0.5), 2),
            "p99": round(percentile(values, 0.99), 2), "most": round(values[-1], 2)}


# ---- The greedy client, a process of its own


class Asker:
    """A connection of the greedy client."""

    def __init__(self, where):
        self.socket = Connection(where, source=GREEDY)
        self.socket.setblocking(False)
        self.answer = b""
        self.prompt = 0

    def begin(self, prompt, fields):
        self.prompt, self.answer = prompt, b""
        self.socket.send(asked(PROMPTS[prompt], TOKENS, fields))

    def read(self):
        """Whether the answer is complete."""
        self.answer += self.socket.recv(1 << 16)
        if self.answer.startswith(b"HTTP/1.1 200"):
            return self.answer.endswith(b"0\r\n\r\n")
        return b"\r\n\r\n" in self.answer and self.answer.endswith(b"}")


def greedy(where, rate, right, fields, pipe):
    """Asks `rate` times a second, for as long as a connection is free; what came of it, once `pipe` says
    so. `right`: the text of each prompt; `fields`: of HTTP, as it sends them."""
    os.nice(10)
    selector = selectors.DefaultSelector()
    # In turns, lest the server close some for being idle.
    free = collections.deque(Asker(where) for _ in range(CONNECTIONS))
    for asker in free:
        selector.register(asker.socket, selectors.EVENT_READ, asker)
    counts = collections.Counter()
    begin, begun = time.monotonic(), 0
    # Somebody is served in the end, however slow the machine.
    while not pipe.poll() or (not counts["accepted"] and time.monotonic() - begin < 60):
        due = int((time.monotonic() - begin) * rate) - begun
        for _ in range(min(due, len(free))):
            free.popleft().begin(begun % len(PROMPTS), fields)
            begun += 1
        for key, _ in selector.select(0.005):
            asker = key.data
            if not asker.read():
                continue
            free.append(asker)
            if not asker.answer.startswith(b"HTTP/1.1 200"):
                counts["refused"] += 1
                counts["refused without Retry-After"] += b"\r\nRetry-After: " not in asker.answer
                counts["refused otherwise than by 429"] += not asker.answer.startswith(b"HTTP/1.1 429")
            else:
                counts["accepted"] += 1
                counts["not intact"] += text_of(asker.answer.decode()) != right[asker.prompt]
    # Of the others nobody knows whether they were accepted.
    counts["cut"] = CONNECTIONS - len(free)
    took = time.monotonic() - begin
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pipe.send({"asked_per_second": round(begun / took, 1), **counts,
               "processors": round((usage.ru_utime + usage.ru_stime) / took, 2)})


def batches(where, pipe):
    """Two connections that ask an encoder for 1,024 inputs again and again."""
    os.nice(10)
    body = json.dumps({"model": "bigs-demo", "input": ["a word of many"] * 1024}).encode()
    count = collections.Counter()

    def ask():
        while not ended:
            with Connection(where, source=GREEDY) as client:
                client.sendall(request("/v1/embeddings", body))
                count[client.answer()[0]] += 1

    ended = False
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    pipe.poll(None)
    ended = True
    for thread in threads:
        thread.join()
    pipe.send({str(status): number for status, number in count.items()})


# ---- What is measured


class Every(threading.Thread):
    """Calls `work` every so many seconds, until stop(), and keeps what it returns."""

    def __init__(self, period, work):
        super().__init__()
        self.period, self.work = period, work
        self.found = []
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(self.period):
            self.found.append(self.work())

    def stop(self):
        self.ended.set()
        self.join()
        return self.found


def polite_stream(server, source, fields=""):
    """Seconds to the first event, or None where it was refused; and the text."""
    with Connection(server.http, source=source) as client:
        begin = time.monotonic()
        client.sendall(asked(LONG_PROMPT, 16, fields))
        head = b""
        while b"data: {" not in head:
            piece = client.recv(1 << 16)
            head += piece
            if not piece or not head.startswith(b"HTTP/1.1 200"[:len(head)]):
                return None, head.decode()
        took = time.monotonic() - begin
        text = head.decode()
        while not text.endswith("0\r\n\r\n"):
            text += client.recv(1 << 16).decode()
        return took, text_of(text)


def refusal(server):
    """Seconds until another request of the greedy client was refused, or None."""
    with Connection(server.http, source=GREEDY) as client:
        begin = time.monotonic()
        client.sendall(asked(PROMPTS[0], 1))
        piece = client.recv(1 << 16)
        return time.monotonic() - begin if piece.startswith(b"HTTP/1.1 429") else None


def single_input(server):
    body = json.dumps({"model": "bigs-demo", "input": "a single input"}).encode()
    with Connection(server.http, source=POLITE[0]) as client:
        begin = time.monotonic()
        client.sendall(request("/v1/embeddings", body))
        status, _ = client.answer()
        return time.monotonic() - begin if status == 200 else None


def capacity(server, seconds_long):
    """Answers to the greedy client's requests per second, when it asks as often as it gets answers."""
    pipe = Beside(greedy, server.http, 1e9, [""] * len(PROMPTS), server.fields)
    before = server.metrics()
    with pipe:
        time.sleep(seconds_long)
        after = server.metrics()
    name = 'hippodrome_generated_tokens_total{model="h3-demo"}'
    return (after[name] - before.get(name, 0)) / seconds_long / TOKENS


def refused_so_far(server):
    return sum(value for name, value in server.metrics().items()
               if name.startswith('hippodrome_admission_rejected_total{model="h3-demo"'))


def polite_load(server, seconds_long):
    """What the polite ones, and an operator, see meanwhile."""
    streams = [Every(0.2, lambda source=source: polite_stream(server, source)) for source in POLITE]
    operator = {path: Every(0.1, lambda path=path: seconds(lambda: server.get(path, server.admin)))
                for path in ("/health", "/metrics")}
    refused = Every(0.05, lambda: refusal(server))
    resident = Every(0.5, server.resident)
    time.sleep(seconds_long)
    answers = [answer for stream in streams for answer in stream.stop()]
    probes = {path: probe.stop() for path, probe in operator.items()}
    found = {"first_token_ms": times(took for took, _ in answers if took is not None),
             "polite_refused": sum(took is None for took, _ in answers),
             "polite_texts": sorted({text for took, text in answers if took is not None}),
             "refusal_ms": times(took for took in refused.stop() if took is not None)}
    for path, answers in probes.items():
        assert all(answer[0] == 200 for _, answer in answers), answers[0]
        found[path[1:] + "_ms"] = times(took for took, _ in answers)
    sizes = resident.stop()
    found["resident_mib"] = {"begin": round(sizes[len(sizes) // 5]), "end": round(sizes[-1]),
                             "most": round(max(sizes))}
    return found


def decoder(server, long):
    right = [text_of(server.send(asked(prompt, TOKENS))[1]) for prompt in PROMPTS]
    alone = polite_load(server, 15 if long else 1)
    able = capacity(server, 5 if long else 1)
    assert wait_until(lambda: server.running() == 0)
    # The short form may run beside anything: the greedy client asks as often as it can.
    with Beside(greedy, server.http, 10 * able if long else 1e9, right, "") as beside:
        assert wait_until(lambda: refused_so_far(server) > 0)
        time.sleep(5 if long else 0)
        loaded = polite_load(server, 300 if long else 3)
    assert beside.found["accepted"] > 0 and beside.found["not intact"] == 0, beside.found
    assert beside.found["refused"] > 0, beside.found
    assert beside.found["refused without Retry-After"] == 0, beside.found
    assert beside.found["refused otherwise than by 429"] == 0, beside.found
    assert loaded["first_token_ms"]["count"] > 0 and loaded["polite_refused"] == 0, loaded
    assert len(set(alone["polite_texts"] + loaded["polite_texts"])) == 1, loaded["polite_texts"]
    for found in (alone, loaded):
        del found["polite_texts"]
    return {"capacity_per_second": round(able, 1), "greedy": beside.found, "alone": alone,
            "beside_the_greedy_client": loaded}


def encoder(server, long):
    alone = [single_input(server) for _ in range(40 if long else 5)]
    with Beside(batches, server.http) as beside:
        assert wait_until(lambda: server.metrics()[
            'hippodrome_requests_queued{model="bigs-demo"}'] > 0)
        probe = Every(0.1, lambda: single_input(server))
        assert wait_until(lambda: len(probe.found) > 5)
        time.sleep(30 if long else 0)
        loaded = probe.stop()
    assert None not in alone and None not in loaded, loaded
    assert set(beside.found) == {"200"}, beside.found
    return {"calls_with_1024_inputs": beside.found, "alone_ms": times(alone),
            "beside_them_ms": times(loaded)}


def main():
    arguments = http_peers.arguments()
    with Server(arguments.hippodrome, arguments.models, "--admin", "127.0.0.1:0", "--pad-to",
                "256" if arguments.long else "16") as server:
        report = {"processors": os.cpu_count(), "decoder": decoder(server, arguments.long),
                  "encoder": encoder(server, arguments.long)}
        code = server.stop()
        assert code == 0, (code, server.said())
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
