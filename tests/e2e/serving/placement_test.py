"""--pin and --numa-node decide where threads run, and about no token: the computing threads of a server are
each on a processor of their own, all others wherever they like.

  placement_test.py HIPPODROME MODELS_DIR
"""

import collections
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.hostile_peers import Hippodrome
from testing.http_peers import arguments

NODES = pathlib.Path("/sys/devices/system/node")


def cpus(text):
    """Of a list as Linux writes it."""
    ranges = [part.split("-") for part in text.strip().split(",") if part]
    return {cpu for first, *last in ranges for cpu in range(int(first), int((last or [first])[0]) + 1)}


def usable_node():
    """A NUMA node with processors that this process may use, and these; None: the system tells of none."""
    for path in sorted(NODES.glob("node[0-9]*")):
        shared = cpus((path / "cpulist").read_text()) & os.sched_getaffinity(0)
        if shared:
            return int(path.name.removeprefix("node")), shared
    return None


def affinities(pid):
    """The processors of each thread, of the first one apart."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        allowed = re.search(r"^Cpus_allowed_list:\s*(.*)$", (task / "status").read_text(), re.M)[1]
        found[int(task.name)] = frozenset(cpus(allowed))
    return found.pop(pid), collections.Counter(found.values())


def complete(server):
    client = http.client.HTTPConnection(server.http, timeout=120)
    asked = {"prompt": "It was a dark night, and", "max_tokens": 20, "temperature": 0, "ignore_eos": True}
    client.request("POST", "/v1/completions", json.dumps(asked), {"Content-Type": "application/json"})
    answer = json.loads(client.getresponse().read())
    client.close()
    return answer["choices"][0]["text"]


def serves(given, model, folder, *options):
    """What a server says, and the processors of its threads when it has said it."""
    server = Hippodrome(given.hippodrome, model, os.path.join(folder, "log"), *options)
    try:
        return complete(server), *affinities(server.pid)
    finally:
        server.stop()


def expect_pinned(main, others, process, pinned):
    """The first thread, and those of HTTP and gRPC, have all processors of the process."""
    assert main == process, (main, process)
    assert others[frozenset(process)] > 3, others
    if len(process) > 1:
        alone = collections.Counter({frozenset([cpu]): 1 for cpu in pinned})
        assert others - collections.Counter({frozenset(process): others[frozenset(process)]}) == alone, others


def refused(given, model, *options):
    for command in (["serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"], ["generate", "--prompt", "a"]):
        run = subprocess.run([given.hippodrome, *command, "--model", model, "--device", "cpu", *options],
                             capture_output=True, text=True)
        assert run.returncode == 1, run
        yield run.stderr


def main():
    given = arguments()
    model = os.path.join(given.models, "h3-demo")
    allowed = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        text, main_thread, others = serves(given, model, folder)
        assert main_thread == allowed and set(others) == {frozenset(allowed)}, (main_thread, others)
        pinned_text, *found = serves(given, model, folder, "--pin")
        expect_pinned(*found, allowed, allowed)
        assert pinned_text == text, (pinned_text, text)
        node = usable_node()
        if node:
            node_text, *found = serves(given, model, folder, "--numa-node", str(node[0]), "--pin", "--threads", "1")
            assert node_text == text, (node_text, text)
            expect_pinned(*found, node[1], {min(node[1])})
    for error in refused(given, model, "--pin", "--threads", "1024"):
        assert "--threads is 1024 with --pin, expected " in error, error
    for error in refused(given, model, "--numa-node", "1023"):
        assert re.search("--numa-node is 1023(, expected one of .*0|: the system tells of no nodes)", error), error


if __name__ == "__main__":
    main()
