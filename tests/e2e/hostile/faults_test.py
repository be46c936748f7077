"""Memory that runs out anywhere in a request, a disk that is full, and a wall clock that jumps.

  faults_test.py HIPPODROME MODELS_DIR FAULT_SHIM [--long] [--json FILE]

FAULT_SHIM, loaded before the server, makes one allocation fail, fills the disk, and moves the wall clock. A client
that cannot be accepted must not keep out others. Where memory runs out later, the request ends with an error, or
the server says that it cannot go on, and ends: nobody waits for ever, and what goes on is whole; so are the states
that are kept. Where the disk is full an answer has no handle, and what was kept before is there. Clocks that jump
must touch nobody but states that expire. --long tries each allocation of each kind of request, each fifth of those
that move states, the short form some.
"""

import base64
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import socket
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers
from testing.faults import Faults
from testing.grpc_messages import generate as grpc_generate, generate_message
from testing.http_peers import Server, complete, generate, request, wait_until

FIRST_SITES = 4  # allocations of a connection, before its request is read
NEW_SERVERS = 5
CANNOT_GO_ON = "out of memory where nothing less could be ended"
HEALTH = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"
REQUESTS = {
    "completion": generate("The end of the sea", 4),
    "stream": generate("The end of the sea", 4, True),
    "log probabilities": request("/v1/completions", json.dumps(
        {"model": "h3-demo", "prompt": ["The end", "of the sea"], "max_tokens": 3, "logprobs": 2,
         "echo": True, "n": 2, "seed": 1}).encode()),
    "encoder": request("/predict", b'{"inputs": [["a word"], ["two words"]]}'),
    "metrics": b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
}
KEPT, PUT = "0" * 31 + "1", "0" * 31 + "2"  # handles
PLACE = "/v1/states/"


def saying(prompt, **fields):
    return request("/v1/completions", json.dumps(
        {"model": "h3-demo", "prompt": prompt, "max_tokens": 4, "temperature": 0, "ignore_eos": True,
         **fields}).encode())


def fetch(server, handle):
    return ask(server, "GET", PLACE + handle)


def ask(server, method, path, body=b""):
    client = http.client.HTTPConnection(*server.http, timeout=60)
    with contextlib.closing(client):
        client.request(method, path, body)
        answer = client.getresponse()
        return answer.status, answer.read()


def of_states(file):
    """Requests that keep states, go on from them and move them."""
    def moving(method, path, body=b""):
        return f"{method} {PLACE}{path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    return {
        "a state is kept": saying("The end", return_state="handle"),
        "a state is sent": saying("The end", return_state="inline"),
        "a state is gone on from": saying(" of", state=KEPT),
        "a state is brought": saying(" of", state=base64.b64encode(file).decode()),
        "a state is put": moving("PUT", PUT, file),
        "a state is fetched": moving("GET", KEPT),
        "a state is forked": moving("POST", KEPT + "/fork", b'{"n": 2}'),
        "states are listed": b"GET /v1/states HTTP/1.1\r\nHost: h\r\n\r\n",
    }


class NewServer(Server):
    """One that no client has reached."""

    def ready(self):
        return '"event":"ready"' in self.said()


class StateFaults(Faults):
    """Those of servers that keep states in a directory."""

    def __init__(self, arguments):
        super().__init__(arguments.shim)
        self.arguments = arguments
        self.states = tempfile.TemporaryDirectory(prefix="hippodrome-")

    def start(self, kind=Server):
        """A server whose faults these are."""
        self.fail(-1)
        with self.loaded():
            return kind(self.arguments.hippodrome, self.arguments.models, "--state-store", self.states.name)

    def files(self):
        """Of states, and those that are left over."""
        found = [name for _, _, names in os.walk(self.states.name) for name in names]
        whole = [name for name in found if name.endswith(".safetensors")]
        return whole, sorted(set(found) - set(whole))

    def forget(self, server):
        """States but KEPT, each of which must be whole: a store that has more makes more allocations."""
        # Only a process that ended leaves files behind that it had not written to their end. Where the client went,
        # its state may still be written.
        own = f"{server.process.pid}-"
        assert wait_until(lambda: not any(name.startswith(own) for name in self.files()[1])), self.files()[1]
        # One that was put again may have its former file beside it.
        for handle in {name[:32] for name in self.files()[0]} - {KEPT}:
            assert fetch(server, handle)[0] == 200, handle
            assert ask(server, "DELETE", PLACE + handle)[0] == 200, handle


def outcome(client, data):
    """What a client sees: a status, or "closed"."""
    text = b""
    try:
        client.sendall(data)
        while b"\r\n\r\n" not in text or not complete(text):
            piece = client.recv(65536)
            if not piece:
                return "closed"
            text += piece
    except ConnectionError:
        return "closed"
    except socket.timeout:
        raise AssertionError("the client waits for ever") from None
    return text[9:12].decode()


def newcomer(server, data):
    try:
        with server.connect(20) as client:
            return outcome(client, data)
    except ConnectionError:
        return "closed"


def verdict(server, answer):
    """`answer`, or that the server ended, and said why; whoever comes next is served otherwise."""
    ended = answer == "closed" and wait_until(lambda: server.process.poll() is not None, 0.2)
    following = None if ended else newcomer(server, REQUESTS["completion"])
    if following != "200":
        assert wait_until(lambda: server.process.poll() == 1), (
            answer, following, server.process.poll(), server.said())
        assert CANNOT_GO_ON in server.said(), server.said()
        return "the server ended"
    assert answer in ("closed", "200", "500", "503"), answer
    return answer


def going(server, faults):
    """`server`, or another one where it has ended."""
    if server is not None and server.process.poll() is None:
        return server
    server = faults.start()
    server.base = server.load()
    return server


def accepted(server, faults, site):
    """What became of a client for whom one of the first allocations failed."""
    faults.fail(site)
    answer = newcomer(server, REQUESTS["completion"])
    assert faults.failed()
    faults.fail(-1)
    return verdict(server, answer)


def accepting(faults):
    """Of servers that have nothing else to do than to accept their first client, and of one that has had some."""
    seen = []
    for _ in range(NEW_SERVERS):
        with faults.start(NewServer) as server:
            seen.append(accepted(server, faults, 0))
    server = None
    for site in range(FIRST_SITES):
        server = going(server, faults)
        seen.append(accepted(server, faults, site))
    return server, seen


def answering(server, faults, data, step):
    """What became of a request of which one allocation failed, for each `step`th until none is left."""
    seen = collections.Counter()
    site, survived = 0, 0
    while survived < 3:
        server = going(server, faults)
        with server.connect(20) as client:
            assert outcome(client, HEALTH) == "200"  # it is accepted
            faults.fail(site)
            answer = outcome(client, data)
            failed = faults.failed()
            faults.fail(-1)
        # Only where all allocations went well, and other threads make some as well.
        survived = 0 if failed else survived + 1
        if failed:
            seen[verdict(server, answer)] += 1
        if server.process.poll() is None:
            assert wait_until(lambda: server.load() == server.base), (site, answer, server.load())
            faults.forget(server)
        site += step
    return server, dict(seen)


def memory(faults, file, long):
    server, first = accepting(faults)
    seen = {}
    for name, data in {**REQUESTS, **of_states(file)}.items():
        step = 97 if not long else 1 if name in REQUESTS else 5
        server, seen[name] = answering(server, faults, data, step)
        print(name, seen[name], flush=True)
    # The first of the states that are kept is what it was.
    server = going(server, faults)
    faults.forget(server)
    assert fetch(server, KEPT) == (200, file)
    assert server.metrics()["hippodrome_state_store_damaged_total"] == 0
    server.__exit__()
    return {"clients_without_memory": first, "requests_without_memory": seen}


def clock(server, faults):
    """Streams that are live while the clock jumps there and back."""
    def over_http():
        return server.send(generate("The end of the sea", 300, True))[1].count('"choices"')

    def over_grpc():
        return grpc_generate(server, generate_message("The end of the sea", 300, 1))

    asks = [over_http, over_grpc]
    alone = [ask() for ask in asks]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for seconds in (3600, -3600, 0):
            answers = [pool.submit(asks[i % 2]) for i in range(8)]
            assert wait_until(lambda: server.running() > 0)
            faults.jump(seconds)
            assert server.get("/ready")[0] == 200
            for i, answer in enumerate(answers):
                assert answer.result() == alone[i % 2], f"{i} after {seconds} s"
    return {"streams": 24, "jumps_s": [3600, -7200, 3600]}


# ---- States


def complete_states(server, prompt, **fields):
    body = saying(prompt, **fields).split(b"\r\n\r\n", 1)[1]
    status, text = ask(server, "POST", "/v1/completions", body)
    return status, json.loads(text)


def keep(server):
    """The file that KEPT names from now on."""
    answer = complete_states(server, "The end", return_state="inline")[1]
    file = base64.b64decode(answer["state"]["data"])
    assert ask(server, "PUT", PLACE + KEPT, file)[0] == 200
    return file


def full_disk(server, faults, file):
    """What is asked has its answer without a handle, and what was kept is there."""
    expected = complete_states(server, " of", state=KEPT)[1]["choices"]
    before = faults.files()
    faults.fill_disk(1)
    for _ in range(20):
        status, answer = complete_states(server, " of", state=KEPT, return_state="handle")
        assert (status, answer["choices"], answer["state"]["handle"]) == (200, expected, None), answer
        assert ask(server, "PUT", PLACE + PUT, file)[0] == 503
        assert ask(server, "POST", f"{PLACE}{KEPT}/fork")[0] == 503
        assert fetch(server, KEPT) == (200, file)
    assert faults.files() == before and before[1] == [], (before, faults.files())
    assert "state_not_kept" in server.said(), server.said()
    faults.fill_disk(0)
    assert complete_states(server, " of", state=KEPT, return_state="handle")[1]["state"]["handle"]
    assert wait_until(lambda: server.load() == server.base), server.load()
    return {"answers_without_handle": 20, "states_refused": 40}


def expiry(server, faults):
    """A state lives as long as the wall clock says, wherever it jumps."""
    handle = complete_states(server, "The end", return_state="handle", state_ttl=3600)[1]["state"]["handle"]
    for seconds, status in ((3000, 200), (-86400, 200), (3700, 404)):
        faults.jump(seconds)
        assert fetch(server, handle)[0] == status, seconds
        assert fetch(server, KEPT)[0] == 200, seconds
    faults.jump(0)


def main():
    arguments = http_peers.arguments("shim")
    faults = StateFaults(arguments)
    with faults.start() as server:
        report = {"clock": clock(server, faults)}
        server.base = server.at_rest()
        file = keep(server)
        expiry(server, faults)
        report["full_disk"] = full_disk(server, faults, file)
        assert server.get("/ready")[0] == 200
        code = server.stop()
        assert code == 0, (code, server.said())
    report.update(memory(faults, file, arguments.long))
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
