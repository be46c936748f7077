"""Redis that is killed, started again, paused and full while requests run: none of them fails.

  redis_faults_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

Some clients talk, each turn going on from the handle of the turn before. Where a handle is gone, or Redis does not
answer, they begin anew with all that was said, as who keeps only a handle must be ready to. Others ask without states,
and must always get the same answer. All requests must be answered in time: without a handle where there is no room
for a state; refused, as not found or not available, only those that name a handle; and once Redis is back,
conversations go on from handles again. Skipped (77) without redis-server.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers
from testing.free_ports import free_ports
from testing.http_peers import Server, wait_until

SKIPPED = 77
TALKERS, OTHERS = 6, 2
TOKENS = 8  # of an answer
TURNS = 6  # then a new conversation
PATIENCE = 20  # seconds that a request may take: Redis has 2 for each of two calls
OTHER = {"model": "h3-demo", "prompt": "The end of the sea", "max_tokens": TOKENS, "temperature": 0}


class Redis:
    """Without files, at an address of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.host, self.port = "127.0.0.1", str(free_ports(1)[0])
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", self.port, "--bind", self.host, "--save", "", "--appendonly", "no",
             "--dir", self.folder, "--maxmemory-policy", "noeviction"], stdout=subprocess.DEVNULL)
        assert wait_until(lambda: self.call("PING") == "+PONG")

    def call(self, *words):
        """The first line of the answer; nothing where there is none."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        with contextlib.suppress(OSError), socket.create_connection((self.host, int(self.port)), 5) as connection:
            connection.sendall(text.encode())
            return connection.recv(65536).decode().split("\r\n")[0]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def room(self, size):
        assert self.call("CONFIG", "SET", "maxmemory", size) == "+OK"


class Counts:
    """What became of requests, of all clients."""

    NAMES = ("requests", "without_states", "with_handle", "with_null_handle", "handles_refused", "failed")

    def __init__(self):
        self.lock = threading.Lock()
        self.values = dict.fromkeys(self.NAMES, 0)
        self.slowest = 0.0
        self.failures = []

    def add(self, seconds, name, failure=None):
        with self.lock:
            self.values["requests"] += 1
            self.values[name] += 1
            self.slowest = max(self.slowest, seconds)
            if failure is not None:
                self.failures.append(failure)

    def take(self):
        with self.lock:
            found = {**self.values, "slowest_s": round(self.slowest, 2)}
            self.values = dict.fromkeys(self.NAMES, 0)
            self.slowest = 0.0
            return found


class Clients:
    def __init__(self, server):
        self.server, self.counts, self.ended = server, Counts(), threading.Event()
        self.expected = self.ask(OTHER)[1]["choices"][0]["text"]
        self.threads = [threading.Thread(target=self.talk, args=(i,)) for i in range(TALKERS)]
        self.threads += [threading.Thread(target=self.ask_others) for _ in range(OTHERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def ask(self, body):
        """The status, 0 for none, the answer, and the seconds that it took."""
        begin = time.monotonic()
        client = http.client.HTTPConnection(*self.server.http, timeout=PATIENCE)
        try:
            client.request("POST", "/v1/completions", json.dumps(body))
            answer = client.getresponse()
            status, text = answer.status, json.loads(answer.read())
        except OSError as error:
            status, text = 0, str(error)
        client.close()
        return status, text, time.monotonic() - begin

    def ask_others(self):
        while not self.ended.is_set():
            status, answer, seconds = self.ask(OTHER)
            good = status == 200 and answer["choices"][0]["text"] == self.expected
            self.counts.add(seconds, "without_states" if good else "failed", None if good else (status, answer))

    def turn(self, prompt, handle):
        """The new tokens and the handle, if any; no tokens where it was the handle that is refused."""
        body = {"model": "h3-demo", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True,
                "return_state": "handle"}
        if handle:
            body["state"] = handle
        status, answer, seconds = self.ask(body)
        if handle and status in (404, 503):
            self.counts.add(seconds, "handles_refused")
            return None, None
        ids = answer["choices"][0]["token_ids"] if status == 200 else []
        if len(ids) != TOKENS:
            self.counts.add(seconds, "failed", (status, answer))
            return [], None
        found = answer["state"]["handle"]
        self.counts.add(seconds, "with_handle" if found else "with_null_handle")
        return ids, found

    def talk(self, number):
        while not self.ended.is_set():
            text, handle = [], None
            for turn in range(TURNS):
                new = [5 + number, 9 + turn, 20]
                ids, found = self.turn(new if handle else text + new, handle)
                if ids is None:  # anew, with all that was said
                    ids, found = self.turn(text + new, None)
                text, handle = text + new + ids, found


def phases(redis):
    """What is done to Redis, in turn, and whether states can be kept then."""
    return (("as it should be", lambda: None, True),
            ("killed", redis.kill, False),
            ("started again, empty", redis.start, True),
            ("paused", lambda: redis.process.send_signal(signal.SIGSTOP), False),
            ("going on", lambda: redis.process.send_signal(signal.SIGCONT), True),
            ("full", lambda: redis.room("1"), False),
            ("with room", lambda: redis.room("0"), True),
            ("killed and started at once", lambda: (redis.kill(), redis.start()), True))


def run(clients, redis, seconds, rounds):
    report = []
    for _ in range(rounds):
        for name, change, keeps in phases(redis):
            change()
            time.sleep(seconds)
            # Within a moment they go on from handles again, or get none.
            seen = "with_handle" if keeps else "with_null_handle"
            start = clients.counts.values[seen]
            assert wait_until(lambda: clients.counts.values[seen] > start + TALKERS), (name, clients.counts.values)
            report.append({"redis": name, **clients.counts.take()})
            print(report[-1], flush=True)
            assert not clients.counts.failures, clients.counts.failures[:3]
    return report


def main():
    arguments = http_peers.arguments()
    if shutil.which("redis-server") is None:
        print("skipped: there is no redis-server (tools/deps --checks installs it)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        redis = Redis(folder)
        try:
            store = f"redis://{redis.host}:{redis.port}/0"
            with Server(arguments.hippodrome, arguments.models, "--state-store", store) as server:
                with Clients(server) as clients:
                    found = run(clients, redis, 10 if arguments.long else 1, 3 if arguments.long else 1)
                assert wait_until(lambda: server.running() == 0)
                failures = {name: value for name, value in server.metrics().items()
                            if name.startswith("hippodrome_state_store_failures_total")}
                assert server.stop() == 0, server.said()
        finally:
            redis.process.send_signal(signal.SIGCONT)
            redis.kill()
    total = {name: sum(phase[name] for phase in found) for name in Counts.NAMES}
    report = {"seconds_of_a_phase": 10 if arguments.long else 1, "clients": TALKERS + OTHERS, "total": total,
              "failures_of_the_store": failures, "phases": found}
    http_peers.write_report(arguments.json, report)
    print(json.dumps(total))
    assert total["failed"] == 0 and not clients.counts.failures, clients.counts.failures[:3]
    return 0


if __name__ == "__main__":
    sys.exit(main())
