"""Models are loaded, replaced and unloaded while clients ask them over both transports: every answer is that
of the model that it was asked of, no stream breaks, and memory, descriptors and threads stay as they were.
The same by SIGHUP and the list in a configuration file.

  reload_test.py HIPPODROME MODELS_DIR [--sanitized] [--long] [--json FILE]

The short form, a test, changes models some 20 times; --long 1,000 times.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.changing_models import (DECODER_CALLS, MOST_NEW_THREADS, PROMPTS, Client, Operator, Place, embedding,
                             growth, grpc_stream, held, resting, streamed, variant)
from testing import http_peers
from testing.http_peers import Server, wait_until
from testing.processes import Process

LONG_STREAM = 400  # tokens: as long as several changes


def place_of(server):
    return Place(*("%s:%d" % server.address(name) for name in ("http", "grpc", "admin")))


def learn(operator, versions):
    """What each version answers, alone."""
    for version in versions["decoder"]:
        operator.load("swap", version)
        operator.learn("swap", version, DECODER_CALLS)
        operator.learn("swap", version, (streamed, grpc_stream), PROMPTS[:1], LONG_STREAM)
    for version in versions["encoder"]:
        operator.load("encoder", version)
        operator.learn("encoder", version, (embedding,))
    answers = {}
    for (call, prompt, tokens, version), answer in operator.expected.items():
        answers.setdefault((call, prompt, tokens), []).append(answer)
    for (call, prompt, _), (one, other) in answers.items():
        assert one != other, f"{call.__name__} of {prompt!r} does not tell the models apart"


def clients_of(operator):
    def asks(name, calls, shift):
        def ask(i):
            return operator.check(name, calls[i % len(calls)], PROMPTS[(i + shift) % len(PROMPTS)])
        return ask

    def long_stream(call):
        return lambda i: operator.check("swap", call, PROMPTS[0], LONG_STREAM)

    return [Client(asks("swap", DECODER_CALLS, 0)), Client(asks("comes", DECODER_CALLS, 1)),
            Client(asks("h3-demo", DECODER_CALLS, 2)), Client(asks("encoder", (embedding,), 3)),
            Client(long_stream(streamed)), Client(long_stream(grpc_stream))]


def change(operator, versions, i):
    """Two models replaced, one that comes and goes. How many changes that were."""
    operator.load("swap", versions["decoder"][i % 2])
    operator.load("comes", versions["decoder"][i // 2 % 2])
    operator.load("encoder", versions["encoder"][i % 2])
    time.sleep(0.1)  # so that there are answers that only one model can have given
    operator.unload("comes")
    return 4


def settled(operator):
    """Whether no model that was replaced or unloaded is left."""
    states = {model["state"] for model in operator.index().values()}
    return "UNLOADING" not in states and "LOADING" not in states


def at_rest(server, operator, clients):
    with resting(clients):
        assert wait_until(lambda: settled(operator)), operator.index()
        assert wait_until(lambda: server.running() == 0)
        return held(server.pid)


def check_traffic(server, operator, versions, rounds):
    learn(operator, versions)
    operator.served("h3-demo", versions["decoder"][0])
    clients = clients_of(operator)
    for client in clients:
        client.start()
    samples, changes = [], 0
    try:
        for i in range(rounds):
            changes += change(operator, versions, i)
            if i == rounds // 10 or (i + 1) % max(1, rounds // 10) == 0:
                samples.append({"changes": changes, **at_rest(server, operator, clients)})
    finally:
        for client in clients:
            client.stop()
    failures = [failure for client in clients for failure in client.failures]
    assert not failures, failures[:3]
    return {"loads_and_unloads": changes,
            "answers": sum(client.asked for client in clients),
            "answers_that_only_one_model_can_have_given": sum(client.certain for client in clients),
            "wrong_or_broken_answers": len(failures),
            "most_growth": growth(samples),
            "samples": samples}


def copy_with(source, directory, name, change_bytes):
    shutil.copytree(source, directory)
    path = os.path.join(directory, name)
    os.chmod(path, 0o644)
    with open(path, "rb") as file:
        data = change_bytes(file.read())
    with open(path, "wb") as file:
        file.write(data)
    return directory


def check_failures(server, operator, good, work):
    """What cannot be loaded changes nothing."""
    bad = {
        "nowhere": os.path.join(work, "nowhere"),
        "truncated": copy_with(good, os.path.join(work, "truncated"), "model.safetensors",
                               lambda data: data[:len(data) // 2]),
        "header": copy_with(good, os.path.join(work, "header"), "model.safetensors",
                            lambda data: b"\xff" * 8 + data[8:]),
        "config": copy_with(good, os.path.join(work, "config"), "config.json",
                            lambda data: json.dumps(json.loads(data) | {"d_model": 255}).encode()),
        "no JSON": copy_with(good, os.path.join(work, "no JSON"), "config.json", lambda _: b"{"),
    }
    for directory in bad.values():
        status, body = operator.place.ask("/v2/repository/models/swap/load",
                                          {"parameters": {"directory": directory}},
                                          operator.place.admin)
        assert status in (400, 404) and json.loads(body)["error"], (directory, status, body)
        model = operator.index()["swap"]
        assert model["state"] == "READY" and model["reason"], model
        assert operator.check("swap", streamed, PROMPTS[1])
    return sorted(bad)


def check_races(operator, versions):
    """Many loads of one name at once, and unloads among them."""
    def load(i):
        return operator.place.ask("/v2/repository/models/race/load",
                                  {"parameters": {"directory": versions["decoder"][i % 2]}},
                                  operator.place.admin)[0]

    def unload(_):
        return operator.place.ask("/v2/repository/models/race/unload", {}, operator.place.admin)[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        loads = [pool.submit(load, i) for i in range(8)]
        time.sleep(0.05)
        unloads = [pool.submit(unload, i) for i in range(2)]
    statuses = [load.result() for load in loads]
    assert set(statuses) <= {200, 409}, statuses
    assert {unload.result() for unload in unloads} <= {200, 404}, unloads
    assert load(1) == 200
    status, answer = streamed(operator.place, "race", PROMPTS[0], 12)
    assert (status, answer) == (200, operator.expected[streamed, PROMPTS[0], 12,
                                                       versions["decoder"][1]])
    assert unload(0) == 200
    return {"loaded": statuses.count(200), "given_up": statuses.count(409)}


def check_stop(server, operator, versions):
    """SIGTERM while models load."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        loads = [pool.submit(operator.place.ask, f"/v2/repository/models/late{i}/load",
                             {"parameters": {"directory": versions["decoder"][i % 2]}},
                             operator.place.admin) for i in range(8)]
        time.sleep(0.02)
        code = server.stop()
        statuses = [load.result()[0] for load in loads if load.exception() is None]
    assert code == 0, (code, server.said())
    assert set(statuses) <= {200, 503}, statuses


def check_list(hippodrome, versions, work):
    """SIGHUP with a configuration file: what is new in its list is loaded, what has left it unloaded, what
    has other files replaced; all else stays."""
    path = os.path.join(work, "config.json")
    changing = os.path.join(work, "changing")
    shutil.copytree(versions["decoder"][0], changing)

    def write(**models):
        with open(path + ".new", "w") as file:
            json.dump({"device": "cpu", "http": "127.0.0.1:0", "grpc": "127.0.0.1:0",
                       "admin": "127.0.0.1:0",
                       "model": [f"{name}={directory}" for name, directory in models.items()]}, file)
        os.replace(path + ".new", path)

    write()
    server = Process([hippodrome, "serve", "--config", path], os.path.join(work, "list.log"))
    try:
        place = Place(*(server.listens(name) for name in ("http", "grpc", "admin")))
        operator = Operator(place)

        def models():
            return [model["id"] for model in json.loads(place.ask("/v1/models")[1])["data"]]

        def reload(**wanted):
            write(**wanted)
            server.process.send_signal(signal.SIGHUP)

        def becomes(*names):
            assert wait_until(lambda: models() == list(names)), (models(), server.said())

        def text(name):
            return streamed(place, name, PROMPTS[0], 12)[1]

        assert place.ask("/ready")[0] == 503  # there is no model
        reload(a=changing, b=versions["encoder"][0])
        becomes("a", "b")
        assert place.ask("/ready")[0] == 200
        before = text("a")
        reload(c=versions["decoder"][1], a=changing)
        becomes("c", "a")
        assert text("c") != before and text("a") == before
        operator.load("mine", versions["decoder"][1])
        operator.unload("c")
        new = os.path.join(changing, "model.safetensors")
        shutil.copy(os.path.join(versions["decoder"][1], "model.safetensors"), new + ".new")
        os.replace(new + ".new", new)
        reload(c=versions["decoder"][1], a=changing)
        assert wait_until(lambda: text("a") != before), server.said()
        assert models() == ["a", "mine"], models()
        reload(a=changing, bad=os.path.join(work, "nowhere"))
        assert wait_until(lambda: operator.index().get("bad", {}).get("reason")), operator.index()
        assert models() == ["a", "mine"], models()
        with open(path, "w") as file:
            file.write("{")
        server.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: "config.json" in server.said()), server.said()
        assert models() == ["a", "mine"], models()
        assert server.stop() == 0
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def main():
    arguments = http_peers.arguments("--sanitized")
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as work, \
            Server(arguments.hippodrome, arguments.models, "--admin", "127.0.0.1:0",
                   "--pad-to", "none", "--max-sequences", "8") as server:
        versions = {}
        for kind, name in (("decoder", "h3-demo"), ("encoder", "bigs-demo")):
            model = os.path.join(arguments.models, name)
            versions[kind] = [model, variant(model, os.path.join(work, name))]
        operator = Operator(place_of(server))
        report = check_traffic(server, operator, versions, 250 if arguments.long else 5)
        report["not_loaded"] = check_failures(server, operator, versions["decoder"][0], work)
        report["race"] = check_races(operator, versions)
        check_stop(server, operator, versions)
        check_list(arguments.hippodrome, versions, work)
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)
    grew = report["most_growth"]
    assert grew["threads"] <= MOST_NEW_THREADS and grew["descriptors"] <= 0, grew
    if not arguments.sanitized:
        assert grew["resident_mib"] <= 16, grew


if __name__ == "__main__":
    sys.exit(main())
