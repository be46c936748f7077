"""All kinds of work at once, for a long time: every answer is right, and at rest the server holds no more
memory, descriptors and threads than it did in the beginning.

  endurance_test.py HIPPODROME MODELS_DIR BIGS_GOLDEN [--sanitized] [--seconds N] [--cpu X] [--long]
                    [--json FILE]

Streams, scores, encoders' tasks and embeddings over HTTP and gRPC, with TLS and keys; clients that leave,
bad requests, scrapes, connections that come and go, models that are replaced and unloaded, SIGHUP, log
files that are moved away. Now and then all clients rest, and the server is measured. The short form, a
test, takes some 8 seconds; --long takes an hour, of --cpu cores (0.5) with its clients, prints a line a
minute, and writes its report when it is interrupted, too.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import changing_models
from testing.changing_models import (DECODER_CALLS, MOST_NEW_THREADS, PROMPTS, Client, Operator, Place, embedding,
                             growth, held, infer, predict, variant)
from testing import grpc_messages, http_peers
from testing.http_peers import wait_until
from testing.processes import Process
from testing import raw_http2

KEYS = {"client": "a-key-of-clients", "operator": "a-key-of-operators"}
LONG_SECONDS = 3600
MOST_GROWTH = 16  # MiB of resident memory at rest


# ---- The server


def certificate(work):
    """A self-signed one, for localhost. Its files."""
    key, cert = os.path.join(work, "key.pem"), os.path.join(work, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return key, cert


def write_keys(path):
    keys = [{"name": name, "admin": name == "operator",
             "secrets": [{"sha256": hashlib.sha256(key.encode()).hexdigest()}]}
            for name, key in KEYS.items()]
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        json.dump({"keys": keys}, file)


class EnduringServer(Process):
    """With TLS, keys, a configuration file and an access log."""

    def __init__(self, hippodrome, models, work):
        self.access_log = os.path.join(work, "access.log")
        key, cert = certificate(work)
        write_keys(os.path.join(work, "keys.json"))
        config = {"device": "cpu", "http": "127.0.0.1:0", "grpc": "127.0.0.1:0", "admin": "127.0.0.1:0",
                  "pad-to": "none", "max-sequences": 8, "tls-cert": cert, "tls-key": key,
                  "api-keys": os.path.join(work, "keys.json"), "access-log": self.access_log,
                  "model": [f"{name}={directory}" for name, directory in models.items()]}
        path = os.path.join(work, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        super().__init__([hippodrome, "serve", "--config", path], os.path.join(work, "log"))
        addresses = [self.listens(name) for name in ("http", "grpc", "admin")]
        self.place = Place(*addresses, cert, KEYS["client"], KEYS["operator"])
        if not wait_until(lambda: self.place.ask("/ready")[0] == 200):
            raise RuntimeError("not ready: " + self.said())

    def metrics(self):
        _, text = self.place.ask("/metrics", where=self.place.admin)
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in text.decode().splitlines() if line.startswith("hippodrome_")}

    def busy(self):
        """The gauges that must be 0 at rest, and are not."""
        names = ("hippodrome_requests_running", "hippodrome_requests_queued", "hippodrome_state_bytes",
                 "hippodrome_http_body_bytes", "hippodrome_log_probability_bytes",
                 "hippodrome_grpc_connections", 'hippodrome_http_connections{listener="main"}')
        return {name: value for name, value in self.metrics().items()
                if value != 0 and name.startswith(names) and "refused" not in name}

    def reload(self):
        """Moves the access log away, as logrotate does, and says so."""
        os.replace(self.access_log, self.access_log + ".1")
        self.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: os.path.exists(self.access_log), 30), "the log is not opened again"


# ---- What clients do


class Work:
    """The work of all clients; each function does one piece, and fails where the answer is wrong."""

    def __init__(self, server, operator, directories):
        self.server, self.place, self.operator = server, server.place, operator
        self.directories = directories
        self.draw = random.Random(1)
        self.done = {}
        self.counters = {}  # as of the last scrape: they never fall, whatever happens to models

    def count(self, name):
        self.done[name] = self.done.get(name, 0) + 1

    def decode(self, i):
        name = ("h3-demo", "swap", "comes")[i % 3]
        call = (*DECODER_CALLS, infer)[i // 3 % (len(DECODER_CALLS) + 1)]
        self.operator.check(name, call, PROMPTS[i % len(PROMPTS)])
        self.count(call.__name__)

    def encode(self, i):
        call, name = ((embedding, "bigs-demo"), (predict, "classifier"))[i % 2]
        self.operator.check(name, call, PROMPTS[i % len(PROMPTS)])
        self.count(call.__name__)

    def leave(self, i):
        """Begins a stream, reads a little, and goes."""
        tokens = self.draw.choice([50, 500, 2000])
        self.count("left")
        if i % 2:
            message = grpc_messages.generate_message(PROMPTS[0], tokens)
            with raw_http2.Connection(self.place.grpc, 60, tls=self.place.grpc_tls) as connection:
                stream = connection.open(grpc_messages.GENERATE, **self.place.fields())
                for kind, *_ in connection.sending(stream, raw_http2.message(message)):
                    if kind == raw_http2.DATA:
                        break
            return
        connection = self.place.connect(self.place.http)
        body = changing_models.completion("h3-demo", PROMPTS[0], tokens, stream=True)
        connection.request("POST", "/v1/completions", json.dumps(body),
                           self.place.fields())
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read1(100)
        connection.close()

    def misbehave(self, i):
        """What is refused, and how."""
        key = self.place.key
        cases = [("/v1/completions", "{", 400), ("/v1/completions", {"prompt": 1.5}, 400),
                 ("/v1/completions", {"prompt": "a", "model": "nobody"}, 404),
                 ("/v1/completions", {"prompt": "a", "max_tokens": 1 << 40}, 400),
                 ("/nowhere", {}, 404), ("/v2/repository/index", {}, 404),
                 ("/v1/completions", {"prompt": "a"}, 401)]
        path, body, expected = cases[i % len(cases)]
        place = Place(self.place.http, self.place.grpc, self.place.admin, self.place.authority,
                      "a-wrong-key" if expected == 401 else key)
        status, answer = place.ask(path, body)
        assert status == expected, (path, body, status, answer)
        status, _ = self.place.call(grpc_messages.GENERATE, b"\xff\xff")
        assert status == 12, status  # gRPC says so of what is no message
        self.count("refused")

    def connect(self, i):
        """Connections that say nothing, or not TLS."""
        for address in (self.place.http, self.place.grpc):
            host, port = address.rsplit(":", 1)
            with socket.create_connection((host, int(port)), 10) as client:
                if i % 2:
                    client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        self.count("connected")

    def scrape(self, i):
        for path in ("/health", "/ready"):
            status, body = self.place.ask(path, where=self.place.admin)
            assert status == 200, (path, status, body)
        found = self.server.metrics()
        for name, value in self.counters.items():
            assert found.get(name, -1) >= value, f"{name} went from {value} to {found.get(name)}"
        self.counters = {name: value for name, value in found.items()
                         if name.split("{")[0].endswith(("_total", "_count", "_bucket"))}
        assert self.counters
        self.count("scraped")

    def change(self, i):
        """Changes models."""
        self.operator.load("swap", self.directories[i % 2])
        self.operator.load("comes", self.directories[i // 2 % 2])
        time.sleep(0.2)
        self.operator.unload("comes")
        self.count("changed models")

    def reload(self, i):
        self.server.reload()
        self.count("reloaded")


class Governor(threading.Thread):
    """Chooses the pauses of the clients so that they and the server take `share` of a core."""

    def __init__(self, server, share):
        super().__init__(daemon=True)
        self.server, self.share = server, share
        self.pause = 0.1
        self.begin, self.before = time.monotonic(), self.seconds()
        self.ended = threading.Event()

    def seconds(self):
        own = resource.getrusage(resource.RUSAGE_SELF)
        return self.server.processor_seconds() + own.ru_utime + own.ru_stime

    def used(self):
        """Cores, on average."""
        return (self.seconds() - self.before) / (time.monotonic() - self.begin)

    def run(self):
        begin, before = time.monotonic(), self.seconds()
        while not self.ended.wait(1):
            now, seconds = time.monotonic(), self.seconds()
            used = (seconds - before) / (now - begin)
            begin, before = now, seconds
            self.pause = min(5, max(0.005, self.pause * min(2, max(0.5, used / self.share))))


# ---- The run


class Endurance:
    def __init__(self, server, work, seconds, share, path):
        """`path`: of the report, which is written with each measurement, or None."""
        self.server, self.work, self.seconds, self.path = server, work, seconds, path
        self.governor = Governor(server, share)
        steady = lambda: self.governor.pause * random.uniform(0.5, 1.5)
        seldom = max(1.0, min(10.0, seconds / 8))
        self.clients = [Client(work.decode, steady), Client(work.decode, steady),
                        Client(lambda i: work.decode(i + 1), steady), Client(work.encode, steady),
                        Client(work.leave, steady), Client(work.misbehave, steady),
                        Client(work.connect, steady), Client(work.scrape, lambda: 1),
                        Client(work.change, lambda: seldom), Client(work.reload, lambda: 2 * seldom)]
        self.samples = []
        self.begin = time.monotonic()
        self.interrupted = False

    def at_rest(self):
        """What the server holds once all clients rest."""
        with changing_models.resting(self.clients):
            assert wait_until(lambda: not self.server.busy()), self.server.busy()
            assert wait_until(lambda: all(model["state"] in ("READY", "UNAVAILABLE")
                                          for model in self.work.operator.index().values()))
            return {"seconds": round(time.monotonic() - self.begin), 
                    **held(self.server.pid)}

    def failures(self):
        return [failure for client in self.clients for failure in client.failures]

    def run(self):
        signal.signal(signal.SIGINT, self.interrupt)
        signal.signal(signal.SIGTERM, self.interrupt)
        self.governor.start()
        for client in self.clients:
            client.start()
        rest = max(2.0, min(60.0, self.seconds / 5))
        try:
            while not self.interrupted and not self.failures():
                left = self.begin + self.seconds - time.monotonic()
                if left < rest / 2:
                    break
                self.sleep(min(rest, left))
                self.samples.append(self.at_rest())
                self.say()
                http_peers.write_report(self.path, self.report())
        finally:
            for client in self.clients:
                client.stop()
            self.governor.ended.set()

    def sleep(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.interrupted and not self.failures():
            time.sleep(0.1)

    def interrupt(self, *_):
        self.interrupted = True

    def say(self):
        sample = self.samples[-1]
        print("{seconds:5} s: {resident_mib} MiB, {threads} threads, {descriptors} descriptors; "
              .format(**sample) + f"{sum(self.work.done.values())} pieces of work, "
              f"{len(self.failures())} failures, {self.governor.used():.2f} cores", flush=True)

    def report(self):
        """The first tenth is for warming up."""
        samples = self.samples[len(self.samples) // 10:]
        return {"seconds": round(time.monotonic() - self.begin), "interrupted": self.interrupted,
                "cores": round(self.governor.used(), 2),
                "work": dict(sorted(self.work.done.items())), "failures": self.failures()[:10],
                "most_growth_after_warming_up": growth(samples) if samples else {}, "samples": self.samples}


def check_log(server):
    """Nothing secret is in the logs, and every line of the access log is JSON."""
    texts = [server.said()]
    for path in (server.access_log, server.access_log + ".1"):
        with open(path) as file:
            lines = file.read().splitlines()
        for line in lines:
            json.loads(line)
        texts += lines
    text = "\n".join(texts)
    for secret in (*KEYS.values(), *PROMPTS):
        assert secret not in text, f"{secret!r} is in a log"


def main():
    parser = argparse.ArgumentParser()
    for name in ("hippodrome", "models", "golden"):
        parser.add_argument(name)
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--cpu", type=float)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    seconds = arguments.seconds or (LONG_SECONDS if arguments.long else 6)
    share = arguments.cpu or (0.5 if arguments.long else 1.0)
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as work:
        demo = os.path.join(arguments.models, "h3-demo")
        directories = [demo, variant(demo, os.path.join(work, "other"))]
        models = {"h3-demo": demo, "bigs-demo": os.path.join(arguments.models, "bigs-demo"),
                  "classifier": os.path.join(arguments.golden, "classifier")}
        server = EnduringServer(arguments.hippodrome, models, work)
        try:
            operator = Operator(server.place)
            for version in directories:
                operator.load("swap", version)
                operator.learn("swap", version, (*DECODER_CALLS, infer))
            for name, call in (("bigs-demo", embedding), ("classifier", predict)):
                operator.served(name, models[name])
                operator.learn(name, models[name], (call,))
            operator.served("h3-demo", demo)
            run = Endurance(server, Work(server, operator, directories), seconds, share,
                            arguments.json)
            try:
                run.run()
            finally:
                report = run.report()
                http_peers.write_report(arguments.json, report)
            code = server.stop() if server.process.poll() is None else server.process.returncode
            assert code == 0, (code, server.said()[-2000:])
            check_log(server)
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    print(json.dumps({name: value for name, value in report.items() if name != "samples"}, indent=1))
    assert not report["failures"], report["failures"][:3]
    grew = report["most_growth_after_warming_up"]
    if arguments.long and not arguments.sanitized:
        assert grew["resident_mib"] <= MOST_GROWTH, grew
        assert grew["threads"] <= MOST_NEW_THREADS and grew["descriptors"] <= 0, grew


if __name__ == "__main__":
    sys.exit(main())
