"""Three API keys at one address: a greedy one, that asks for ten times what the server can do over HTTP and
gRPC, and two polite ones beside it.

  key_limits_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

The greedy key never holds more than its limits, by what the server says while it runs, and by what the
client was answered in the end; the polite ones are never refused. That is asserted; --long does it for four
minutes, and reports how long the polite ones wait.
"""

import collections
import json
import os
import pathlib
import selectors
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import api_keys, grpc_messages, http_peers
import overload_test
from testing import raw_http2
from testing.http_peers import Beside, Server, wait_until
from overload_test import PROMPTS, TOKENS, Every, asked, text_of, times

CALLS, RESERVED = 2, 400


def greedy_grpc(address, rate, authorization, pipe):
    """As overload_test.greedy(), with all calls on one connection."""
    os.nice(10)
    message = raw_http2.message(grpc_messages.generate_message(PROMPTS[0], TOKENS))
    counts, open_calls = collections.Counter(), set()
    with raw_http2.Connection(address) as connection:
        selector = selectors.DefaultSelector()
        selector.register(connection.socket, selectors.EVENT_READ)
        frames = connection.frames()
        begin, begun = time.monotonic(), 0
        while not pipe.poll() or (not counts["accepted"] and time.monotonic() - begin < 60):
            due = min(int((time.monotonic() - begin) * rate) - begun, 64 - len(open_calls))
            for _ in range(max(due, 0)):
                stream = connection.open(grpc_messages.GENERATE, authorization=authorization)
                connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, stream, message))
                open_calls.add(stream)
                begun += 1
            if not connection.buffer and not selector.select(0.005):
                continue
            kind, flags, stream, content = next(frames)
            if kind == raw_http2.DATA and content:
                update = len(content).to_bytes(4, "big")
                connection.send(raw_http2.frame(raw_http2.WINDOW_UPDATE, 0, 0, update))
            if kind == raw_http2.HEADERS and flags & raw_http2.END_STREAM:
                _, _, value = content.partition(b"grpc-status")
                status = int(value[1:1 + value[0]])
                counts["accepted"] += status == 0
                counts["refused"] += status == 8
                counts["refused without retry-after"] += status == 8 and b"retry-after" not in content
                counts["otherwise"] += status not in (0, 8)
                open_calls.discard(stream)
        counts["cut"] = len(open_calls)
        pipe.send({"asked_per_second": round(begun / (time.monotonic() - begin), 1), **counts})


def polite_grpc(server, authorization):
    """Seconds to the first message, or None where it was refused; and whether it came to its end."""
    message = grpc_messages.generate_message(overload_test.LONG_PROMPT, 16)
    with raw_http2.Connection(grpc_messages.address_of(server)) as connection:
        begin, took = time.monotonic(), None
        grpc_messages.open_call(connection, grpc_messages.GENERATE, message, authorization=authorization)
        for kind, flags, _, content in connection.frames():
            if kind == raw_http2.DATA and took is None:
                took = time.monotonic() - begin
            if kind == raw_http2.HEADERS and flags & raw_http2.END_STREAM:
                return took, b"grpc-status\x010" in content
    return None, False


def held(server):
    """What the greedy key holds."""
    metrics = server.metrics()
    return [metrics[f'hippodrome_key_{name}{{key="greedy"}}']
            for name in ("calls_running", "reserved_tokens")]


def counted(server):
    metrics = server.metrics()
    refused = [value for name, value in metrics.items()
               if name.startswith('hippodrome_key_refused_total{key="greedy"')]
    return {"admitted": metrics['hippodrome_key_requests_total{key="greedy"}'], "refused": sum(refused)}


def polite_load(server, secrets, seconds_long):
    fields = [f"Authorization: Bearer {secret}\r\n" for secret in secrets]
    http = [Every(0.2, lambda field=field: overload_test.polite_stream(server, "127.0.0.1", field))
            for field in fields]
    grpc = [Every(0.2, lambda secret=secret: polite_grpc(server, f"Bearer {secret}"))
            for secret in secrets]
    seen = Every(0.05, lambda: held(server))
    assert wait_until(lambda: all(probe.found for probe in http + grpc))
    time.sleep(seconds_long)
    answers = {"http": [answer for probe in http for answer in probe.stop()],
               "grpc": [answer for probe in grpc for answer in probe.stop()]}
    for found in answers.values():
        assert all(took is not None for took, _ in found), found
    assert all(whole for _, whole in answers["grpc"])
    assert len({text for _, text in answers["http"]}) == 1
    most = [max(values) for values in zip(*seen.stop())]
    return {"first_token_ms": {api: times(took for took, _ in found) for api, found in answers.items()},
            "greedy_held_at_most": {"calls": most[0], "tokens": most[1]}}


def main():
    arguments = http_peers.arguments()
    with tempfile.TemporaryDirectory() as folder:
        limits = {"calls": CALLS, "tokens": RESERVED}
        greedy, entry = api_keys.new(arguments.hippodrome, "greedy", limits=limits)
        polite = [api_keys.new(arguments.hippodrome, f"polite-{i}") for i in range(2)]
        operator, operators = api_keys.new(arguments.hippodrome, "operator", admin=True)
        path = os.path.join(folder, "keys.json")
        api_keys.write(path, [entry, operators, *(entry for _, entry in polite)])
        with Server(arguments.hippodrome, arguments.models, "--admin", "127.0.0.1:0", "--api-keys", path,
                    key=operator) as server:
            report = measure(server, greedy, [secret for secret, _ in polite], arguments.long)
            code = server.stop()
            assert code == 0, (code, server.said())
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


def measure(server, greedy, polite, long):
    field = f"Authorization: Bearer {greedy}\r\n"
    right = [text_of(server.send(asked(prompt, TOKENS, field))[1]) for prompt in PROMPTS]
    alone = polite_load(server, polite, 30 if long else 0)
    able = overload_test.capacity(server, 5 if long else 1)
    assert wait_until(lambda: server.running() == 0)
    before = counted(server)
    # Half over HTTP, half over gRPC. The short form may run beside anything.
    rate = 5 * able if long else 1e9
    with Beside(overload_test.greedy, server.http, rate, right, field) as http:
        with Beside(greedy_grpc, grpc_messages.address_of(server), rate, f"Bearer {greedy}") as grpc:
            assert wait_until(lambda: counted(server)["refused"] > before["refused"])
            time.sleep(5 if long else 0)
            loaded = polite_load(server, polite, 240 if long else 1)
    assert wait_until(lambda: held(server) == [0, 0]), held(server)
    most = loaded["greedy_held_at_most"]
    assert most["calls"] <= CALLS and most["tokens"] <= RESERVED, most
    after = counted(server)
    told = {name: http.found[name] + grpc.found[name] for name in ("accepted", "refused", "cut")}
    refused = after["refused"] - before["refused"]
    assert told["refused"] <= refused <= told["refused"] + told["cut"], (told, refused)
    assert http.found["accepted"] > 0 and grpc.found["accepted"] > 0, (http.found, grpc.found)
    assert http.found["not intact"] == 0 and grpc.found["otherwise"] == 0, (http.found, grpc.found)
    for found in (http.found, grpc.found):
        assert not any(count for name, count in found.items() if name.startswith("refused ")), found
    return {"processors": os.cpu_count(), "capacity_per_second": round(able, 1),
            "greedy_may_hold": {"calls": CALLS, "tokens": RESERVED}, "greedy_http": http.found,
            "greedy_grpc": grpc.found, "greedy_on_the_server": {"refused": refused}, "alone": alone,
            "beside_the_greedy_key": loaded}


if __name__ == "__main__":
    sys.exit(main())
