"""Three replicas behind a balancer of deploy/: one is killed, one paused, one drained, and clients that follow the rule of
docs/replicas.md lose nothing.

  replicas_test.py HIPPODROME MODELS_DIR haproxy|nginx [--long] [--json FILE]

--long has 200 clients for two minutes. The exit status is 77 if the balancer or build/python is missing.
"""

import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers, python_packages

python_packages.need()

from testing import replicas

DRAINING = ("--drain-delay", "3", "--grace-seconds", "60")
# Seconds: to warm up, in which all are well, while one is dead, while one is paused, and between these.
SHORT, LONG = (0.5, 2, 1, 2, 0.5), (5, 25, 15, 20, 15)


def spread(counts):
    """How far the largest and the smallest share are from an even one."""
    even = sum(counts) / len(counts)
    return round(max(max(counts) / even - 1, 1 - min(counts) / even), 3)


def disturb(group, load, times):
    """What all replicas did while they were well, then each disturbance once."""
    warm, well, dead, paused, between = times

    def wait(seconds):
        time.sleep(seconds)
        load.check()

    def served():
        return [replica.requests() - count for replica, count in zip(group.replicas, before)]

    killed, stopped, drained = group.replicas
    wait(warm)
    before = [replica.requests() for replica in group.replicas]
    wait(well)
    assert http_peers.wait_until(lambda: min(served()) > 0), served()
    counts = served()
    killed.kill()
    wait(dead)
    killed.start()
    wait(between)
    stopped.pause()
    try:
        wait(paused)
    finally:
        stopped.resume()  # or clients wait for it longer than the test may take
    wait(between)
    code = drained.drain()
    assert code == 0, code
    wait(between)
    return counts


def main():
    given = http_peers.arguments("balancer")
    program = given.hippodrome, given.models
    clients, times = (200, LONG) if given.long else (20, SHORT)
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        store = os.path.join(folder, "store")
        with replicas.Group(program, given.balancer, folder, store, *DRAINING) as group:
            begin = time.monotonic()
            with replicas.load(program, group.balancer, clients, replicas.requests(24)) as load:
                served = disturb(group, load, times)
            failures = group.failures_of_the_well(load.attempts)
            assert not failures, failures[:10]
    report = {"balancer": given.balancer, "cores": os.cpu_count(), "clients": clients,
              "seconds": round(time.monotonic() - begin, 1), "answered": load.answered, "texts_that_differ": 0,
              "requests_lost": 0, "attempts": load.outcomes(), "failures_of_replicas_that_were_well": 0,
              "longest_wait_s": load.longest_wait(), "served_while_all_were_well": served, "spread": spread(served)}
    print(report, flush=True)
    if given.long:
        assert report["spread"] <= 0.15, served
    http_peers.write_report(given.json, report)


if __name__ == "__main__":
    main()
