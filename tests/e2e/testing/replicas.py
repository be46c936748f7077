"""Three replicas on this machine, which share a store of states, behind a balancer, and clients that follow the rule of
docs/replicas.md."""

import collections
import concurrent.futures
import contextlib
import json
import os
import random
import signal
import threading
import time

from testing import balancers, http_peers
from testing.balancers import HOSTS
from testing.free_ports import free_ports
from testing.http_peers import Server, wait_until
from testing.retrying_client import client, serves

GIVE_UP = 60  # seconds that a client tries


class Replica:
    """`disturbed`: from when to when it could not serve as it should. `options`: of serve."""

    def __init__(self, program, host, ports, folder, options):
        self.program, self.host, self.folder = program, host, folder
        self.options = ["--threads", "1", "--max-client-share", "1", "--grpc-max-connections-per-address", "1024",
                        *options]
        for name, port in ports._asdict().items():
            self.options += [f"--{name}", f"{host}:{port}"]
        self.logs, self.disturbed, self.server, self.counted = [], [], None, 0
        self.start()

    def start(self):
        """Ends a disturbance, once it is ready."""
        self.logs.append(os.path.join(self.folder, f"{self.host}-{len(self.logs)}.log"))
        self.server = Server(*self.program, *self.options, "--access-log", self.logs[-1])
        self._well_again()

    def kill(self):
        self._disturb()
        self._count()
        self.server.process.kill()
        self.close()

    def pause(self):
        self._disturb()
        self.server.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.server.process.send_signal(signal.SIGCONT)
        self._well_again()

    def drain(self):
        """The exit status after SIGTERM."""
        self._disturb()
        self._count()
        self.server.signal()
        code = self.server.ended()
        self.close()
        return code

    def requests(self):
        """That were served since the replica was first started, but for those at its ends."""
        return self.counted + self._served()

    def close(self):
        if self.server.process.poll() is None:
            self.server.process.send_signal(signal.SIGCONT)
        self.server.__exit__()

    def _served(self):
        return sum(value for name, value in self.server.metrics().items()
                   if name.startswith("hippodrome_requests_total") and 'model="h3-demo"' in name)

    def _count(self):
        self.counted += self._served()

    def _disturb(self):
        self.disturbed.append([time.monotonic(), float("inf")])

    def _well_again(self):
        if self.disturbed:
            self.disturbed[-1][1] = time.monotonic()

    def access(self):
        """The codes of its calls, by request id."""
        found = {}
        for path in self.logs:
            with open(path) as file:
                for line in file:
                    with contextlib.suppress(json.JSONDecodeError):  # of one that was killed
                        entry = json.loads(line)
                        found[entry["request_id"]] = entry["code"]
        return found


class Group:
    """The replicas and the balancer, ready. `store`: what they share."""

    def __init__(self, program, balancer, folder, store, *options):
        ports = balancers.Ports(*free_ports(len(balancers.Ports._fields), HOSTS))
        path = balancers.program_of(balancer)
        with contextlib.ExitStack() as ends:
            with concurrent.futures.ThreadPoolExecutor(len(HOSTS)) as pool:
                started = [pool.submit(Replica, program, host, ports, folder, ["--state-store", store, *options])
                           for host in HOSTS]
            self.replicas = []
            for done in started:
                self.replicas.append(done.result())
                ends.callback(self.replicas[-1].close)
            self.balancer = balancers.BALANCERS[balancer][0](path, ports, folder)
            ends.callback(self.balancer.stop)
            host, port = self.balancer.http.split(":")
            where = host, int(port)
            ready = wait_until(lambda: http_peers.send(where, b"GET /ready HTTP/1.1\r\nHost: h\r\n\r\n")[0] == 200)
            assert ready and serves(self.balancer.grpc), self.balancer.said()
            self.ends = ends.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends.close()

    def failures_of_the_well(self, attempts):
        """Attempts that failed while the replica that had them was well; and those that nobody's log has, while
        none was killed or stopping."""
        logs = [(replica, replica.access()) for replica in self.replicas]
        found = []
        for attempt in attempts:
            if attempt.outcome in ("ok", "migrated"):
                continue
            had = [replica for replica, log in logs if attempt.id in log]
            if not any(begin <= attempt.end and attempt.begin <= end
                       for replica in had or self.replicas for begin, end in replica.disturbed):
                found.append((attempt, [replica.host for replica in had]))
        return found


def requests(count):
    """Greedy and drawn."""
    for i in range(count):
        yield {"model": "h3-demo", "prompt": f"It was a dark night, and {i}", "max_tokens": 24 + i % 5 * 12, "seed": i,
               "temperature": 0 if i % 2 == 0 else 0.9, "ignore_eos": True}


def converse(ask, request):
    """The texts of two turns, the second from the state of the first, wherever that is."""
    first, state = ask({**request, "return_state": "handle"})
    second, _ = ask({**request, "state": state, "prompt": " Then"})
    return first + second


def single(ask, request):
    return ask(request)[0]


# How each kind of client asks: its protocol, what it adds to a request, and for which texts.
KINDS = {"whole": ("http", {}, single), "stream": ("http", {"stream": True}, single),
         "grpc": ("grpc", {"stream": True}, single), "conversation": ("http", {}, converse)}


class Load:
    """Clients of all kinds that ask one after the other until the end. Their texts are those that an undisturbed
    server gave, or that is an error."""

    def __init__(self, program, balancer, clients, asked):
        self.balancer, self.asked = balancer, list(asked)
        self.expected = self._undisturbed(program)
        self.ended = threading.Event()
        self.attempts, self.answered, self.waits = [], collections.Counter(), []
        self.pool = concurrent.futures.ThreadPoolExecutor(clients)
        kinds = list(KINDS)
        self.running = [self.pool.submit(self._ask_on, i, kinds[i % len(kinds)]) for i in range(clients)]

    def _undisturbed(self, program):
        with Server(*program) as server, client("http", "%s:%d" % server.http, GIVE_UP) as alone:
            return {how: [how(alone.complete, request) for request in self.asked] for how in (single, converse)}

    def _ask_on(self, number, kind):
        protocol, more, how = KINDS[kind]
        rng = random.Random(number)
        with client(protocol, getattr(self.balancer, protocol), GIVE_UP) as ours:
            while not self.ended.is_set():
                which = rng.randrange(len(self.asked))
                begin = time.monotonic()
                text = how(ours.complete, {**self.asked[which], **more})
                self.waits.append(time.monotonic() - begin)
                assert text == self.expected[how][which], (kind, which, text, self.expected[how][which])
                self.answered[kind] += 1
            return ours.attempts

    def check(self):
        """Raises what a client met."""
        for done in self.running:
            if done.done():
                done.result()

    def end(self):
        """Waits for what runs."""
        self.ended.set()
        try:
            for done in self.running:
                self.attempts += done.result()
        finally:
            self.pool.shutdown()

    def outcomes(self):
        return dict(collections.Counter(attempt.outcome for attempt in self.attempts).most_common())

    def longest_wait(self):
        return round(max(self.waits), 2)


@contextlib.contextmanager
def load(*arguments):
    made = Load(*arguments)
    try:
        yield made
    finally:
        made.end()
