"""Three replicas behind a balancer of deploy/, restarted one after the other under load: what was accepted is answered, and
states outlast the servers that kept them. Streams that outlast the grace period end with a state, and are gone on from
elsewhere.

  rolling_restart_test.py HIPPODROME MODELS_DIR haproxy|nginx [--long] [--json FILE]

--long has 100 clients and three rounds. The exit status is 77 if the balancer, redis-server or build/python is missing.
"""

import itertools
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers, python_packages, redis

python_packages.need()

from testing import replicas
from testing.retrying_client import client

STOPPING = ("--drain-delay", "2", "--grace-seconds", "2", "--max-stall-ms", "1")
# Take longer than the grace period: alone, and among 100 clients.
LONG_TOKENS, LONG_TOKENS_AMONG_MANY = 5000, 3000
# Say that the request was not accepted.
REFUSALS = ("HTTP 503", "HTTP 502")


class LongStreams:
    """Streams that are migrated wherever they are, one after the other, over both protocols."""

    def __init__(self, balancer, request, expected):
        self.balancer, self.request, self.expected = balancer, request, expected
        self.ended, self.attempts, self.streams, self.errors = threading.Event(), [], 0, []
        self.threads = [threading.Thread(target=self._ask_on, args=how)
                        for how in (("http", balancer.http), ("grpc", balancer.grpc)) * 2]
        for thread in self.threads:
            thread.start()

    def _ask_on(self, protocol, address):
        try:
            with client(protocol, address, replicas.GIVE_UP) as ours:
                while not self.ended.is_set():
                    text, _ = ours.complete({**self.request, "stream": True})
                    assert text == self.expected, (text[-100:], self.expected[-100:])
                    self.streams += 1
                self.attempts += ours.attempts
        except Exception as error:
            self.errors.append(error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def undisturbed(program, request):
    with http_peers.Server(*program) as server, client("http", "%s:%d" % server.http, 60) as alone:
        return alone.complete(request)[0]


def was_dropped(attempt):
    """Whether a server had accepted it. A connection that ends before anything of an answer says nothing of that."""
    if attempt.outcome in ("ok", "migrated", *REFUSALS):
        return False
    return attempt.answered or not attempt.outcome.startswith(("HTTP broken", "gRPC UNAVAILABLE"))


def restart(replicas_in_order, load):
    """The exit statuses."""
    codes = []
    for replica in replicas_in_order:
        codes.append(replica.drain())
        replica.start()
        # A balancer that asks sends requests again after two checks.
        time.sleep(1.5)
        load.check()
    return codes


def run(program, given, folder, store):
    clients, restarts, tokens = (100, 9, LONG_TOKENS_AMONG_MANY) if given.long else (8, 2, LONG_TOKENS)
    request = {"model": "h3-demo", "prompt": "It was", "max_tokens": tokens, "seed": 1, "temperature": 0.9,
               "ignore_eos": True}
    expected = undisturbed(program, request)
    with replicas.Group(program, given.balancer, folder, store, *STOPPING) as group, \
            replicas.load(program, group.balancer, clients, replicas.requests(8)) as load, \
            LongStreams(group.balancer, request, expected) as streams:
        codes = restart(itertools.islice(itertools.cycle(group.replicas), restarts), load)
    assert not streams.errors, streams.errors
    attempts = load.attempts + streams.attempts
    dropped = [attempt for attempt in attempts if was_dropped(attempt)]
    migrated = sum(attempt.outcome == "migrated" for attempt in attempts)
    report = {"balancer": given.balancer, "cores": os.cpu_count(), "clients": clients, "restarts": len(codes),
              "exit_statuses": codes, "answered": dict(load.answered), "long_streams": streams.streams,
              "migrated": migrated, "accepted_and_dropped": len(dropped), "texts_that_differ": 0, "states_lost": 0,
              "attempts": load.outcomes(), "longest_wait_s": load.longest_wait()}
    print(report, flush=True)
    assert not any(codes), codes  # nothing was cut
    assert not dropped, dropped[:10]
    assert migrated > 0, report
    http_peers.write_report(given.json, report)


def main():
    given = http_peers.arguments("balancer")
    redis_server = shutil.which("redis-server")
    if redis_server is None:
        print("there is no redis-server; tools/deps --checks installs it")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder, redis.running(redis_server) as store:
        run((given.hippodrome, given.models), given, folder, store)


if __name__ == "__main__":
    main()
