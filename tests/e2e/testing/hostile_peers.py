"""The real program, perhaps behind HAProxy, and what is seen of it while peers misbehave."""

import multiprocessing
import os
import re
import threading
import time

from testing import raw_http2
from testing.free_ports import free_addresses
from testing.processes import Process

LIST = "/hippodrome.v1.Models/List"
# What a server may hold more once a flood is over, and behind HAProxy at any time.
ALLOWED = 64 << 20


class Hippodrome(Process):
    def __init__(self, program, model, log, *options):
        super().__init__([program, "serve", "--model", f"m={model}", "--device", "cpu",
                          "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *options], log)
        self.http, self.grpc = self.listens("http"), self.listens("grpc")


class HAProxy(Process):
    """The configuration in deploy/ before `servers`: as it is before one, and with a line more for each
    other one in both backends, as it says."""

    def __init__(self, program, config, servers, log, tls=None, **variables):
        """`tls`: an ssl.SSLContext for clients, where `variables` have it speak TLS."""
        self.http, self.grpc = free_addresses(2)
        environment = dict(os.environ, HAPROXY_HTTP=self.http, HAPROXY_GRPC=self.grpc,
                           HIPPODROME_HTTP=servers[0].http, HIPPODROME_GRPC=servers[0].grpc,
                           **variables)
        if len(servers) > 1:
            config = self.with_more(config, servers, log + ".cfg")
        super().__init__([program, "-db", "-f", config], log, env=environment)
        for _ in range(100):
            if answers(self.grpc, tls=tls):
                return
            if self.process.poll() is not None or "has no server available" in self.said():
                break
            time.sleep(0.1)
        said = self.said()
        self.process.kill()
        self.process.wait()
        self.log.close()
        raise RuntimeError("HAProxy does not serve: " + said)

    @staticmethod
    def with_more(config, servers, path):
        with open(config) as file:
            lines = file.readlines()
        with open(path, "w") as file:
            for line in lines:
                file.write(line)
                found = re.match(r'    server hippodrome "\$\{HIPPODROME_(HTTP|GRPC)-.*?" (.*)', line)
                for i, server in enumerate(servers[1:] if found else []):
                    name = f"hippodrome{i + 2}"
                    address = getattr(server, found[1].lower())
                    options = found[2].replace("http/hippodrome", "http/" + name)
                    file.write(f"    server {name} {address} {options}\n")
        return path


def answers(address, timeout=10, tls=None):
    """Whether an ordinary call succeeds, on a connection of its own."""
    try:
        with raw_http2.Connection(address, timeout, tls=tls) as connection:
            return connection.call(LIST, b"") == 0
    except OSError:
        return False


class Neighbour:
    """Calls as an ordinary client does, ten times a second, on connections and in a process of its own."""

    def __init__(self, address):
        self.pipe, far = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=self._run, args=(address, far))
        self.process.start()
        far.close()

    @staticmethod
    def _run(address, pipe):
        seconds, failures = [], 0
        while not pipe.poll(0.1):
            begin = time.monotonic()
            if answers(address):
                seconds.append(time.monotonic() - begin)
            else:
                failures += 1
        pipe.send((seconds, failures))

    def stop(self):
        """The seconds of each call that succeeded, and how many failed."""
        self.pipe.send(None)
        result = self.pipe.recv()
        self.process.join()
        return result


def attack(flood, address, connections, seconds):
    """Floods over `connections` at once, each opened again when it is cut off, from an address that no
    neighbour has. The frames sent."""
    end = time.monotonic() + seconds
    sent = [0] * connections

    def peer(i):
        while time.monotonic() < end:
            try:
                with raw_http2.Connection(address, 1, "127.0.0.2") as connection:
                    sent[i] += flood(connection, end)
            except OSError:
                time.sleep(0.01)

    peers = [threading.Thread(target=peer, args=(i,)) for i in range(connections)]
    for thread in peers:
        thread.start()
    for thread in peers:
        thread.join()
    return sum(sent)


def settle(server, level, seconds):
    """Waits until less than `level` is resident, for at most so long. What is resident then, and the
    seconds that passed."""
    begin = time.monotonic()
    while server.resident() > level and time.monotonic() - begin < seconds:
        time.sleep(0.1)
    return server.resident(), time.monotonic() - begin


def idle_after(server, seconds):
    """Waits until a tenth of a processor is used at most, for so long. The seconds that passed."""
    begin = time.monotonic()
    used = server.processor_seconds()
    while time.monotonic() - begin < seconds:
        time.sleep(0.2)
        before, used = used, server.processor_seconds()
        if used - before <= 0.02:
            break
    return time.monotonic() - begin


def measure(server, address, name, connections, seconds, allowed):
    """One flood at `address`, a neighbour beside it, and what became of `server`: bytes resident
    before, at the most, and once they fell to `allowed` above or ten seconds later; when a call was
    answered again, tried for ten seconds; and when it was idle again, in at most ten."""
    before = server.resident()
    server.forget_peak()
    neighbour = Neighbour(address)
    sent = attack(raw_http2.FLOODS[name], address, connections, seconds)
    begin = time.monotonic()
    answered = answers(address)
    while not answered and time.monotonic() - begin < 10:
        time.sleep(0.1)
        answered = answers(address)
    answer_after = time.monotonic() - begin
    seconds_of_calls, failures = neighbour.stop()
    idle_after(server, 10)
    idle = time.monotonic() - begin
    peak = server.peak()
    after, settled = settle(server, before + allowed, 10)
    calls = sorted(seconds_of_calls)
    return {"flood": name, "connections": connections, "seconds": seconds, "frames": sent,
            "resident_before": before, "resident_peak": peak, "resident_after": after,
            "settled_after_seconds": round(settled, 2), "answered": answered,
            "answer_after_seconds": round(answer_after, 3), "idle_after_seconds": round(idle, 1),
            "neighbour_calls": len(calls), "neighbour_failures": failures,
            "neighbour_p50_seconds": round(calls[len(calls) // 2], 4) if calls else None,
            "neighbour_max_seconds": round(calls[-1], 4) if calls else None}
