"""Streams that a stopping server hands over to another one, which has the same store of states: no text has a
character more, less or other, and no token is taken in twice.

  migration_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

--long stops the server ten times under 64 streams, half over a directory, half over Redis.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import grpc_messages, http_peers, raw_http2, redis
from testing.http_peers import Server, wait_until

STREAMS, STREAMS_LONG, STOPS_LONG = 32, 64, 10
TOKENS = 1200
# Its parts take turns with the streams' tokens, so that it is not done when they migrate.
PROMPT_TOKENS = 40960
# Streams migrate after two thirds of the grace period.
GRACE = ("--grace-seconds", "4", "--max-stall-ms", "1")
MIGRATED = 3  # FINISH_REASON_MIGRATED


class Part:
    """What one server gave of an answer."""

    def __init__(self):
        self.text, self.tokens, self.finish, self.state, self.usage = "", 0, None, None, {}


def over_http(server, request):
    """OpenAI's events, by an ordinary client."""
    connection = http.client.HTTPConnection(*server.http, timeout=300)
    with contextlib.closing(connection):
        body = {"stream": True, "stream_options": {"include_usage": True}, **request}
        connection.request("POST", "/v1/completions", json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        events = [line[6:] for line in answer.read().decode().split("\n") if line.startswith("data: ")]
    assert events[-1] == "[DONE]", events[-1]
    part = Part()
    for event in map(json.loads, events[:-1]):
        assert "error" not in event, event
        for choice in event["choices"]:
            part.text += choice["text"]
            part.tokens += len(choice["token_ids"])
            part.finish = choice["finish_reason"] or part.finish
        part.state = event.get("state", part.state)
        part.usage = event["usage"] or part.usage
    part.usage["cached_tokens"] = part.usage["prompt_tokens_details"]["cached_tokens"]
    return part


def over_grpc(server, request):
    with raw_http2.Connection(grpc_messages.address_of(server), 300) as connection:
        status, found = grpc_messages.answers(connection, connection.open(grpc_messages.GENERATE),
                                              grpc_messages.completion_message(request))
    assert status == 0, status
    part = Part()
    for message in found:
        fields = dict(grpc_messages.entries(message))
        part.text += fields.get(1, b"").decode()
        part.tokens += sum(byte < 128 for byte in fields.get(2, b""))
        part.finish = fields.get(3)
    usage = dict(grpc_messages.entries(fields[4]))
    part.usage = {"prompt_tokens": usage[1],
                  "cached_tokens": dict(grpc_messages.entries(usage.get(3, b""))).get(1, 0)}
    if 7 in fields:
        state = dict(grpc_messages.entries(fields[7]))
        part.state = {"handle": state[1].decode(), "position": state[2], "exact": state.get(4) == 1}
    return part


def requests(streams):
    """Greedy and drawn, with penalties, with stop strings that come and that do not; one with a long prompt."""
    rng = random.Random(6)
    for i in range(streams - 1):
        request = {"model": "h3-demo", "prompt": f"It was a dark night, and {i}", "max_tokens": TOKENS, "seed": i,
                   "ignore_eos": True, "temperature": 0 if i % 2 == 0 else 0.9}
        if i % 3 == 0:
            request["frequency_penalty"] = 0.2
        if i % 4 < 2:  # what begins so is held back all the time
            request["stop"] = [" the old man and the sea", " of the nothing", "e e e e", "\n\n\n\n\n"]
        yield over_grpc if i % 5 == 4 else over_http, request
    yield over_http, {"model": "h3-demo", "prompt": [rng.randrange(4000) for _ in range(PROMPT_TOKENS)],
                      "max_tokens": 40, "seed": 5, "ignore_eos": True, "temperature": 0.9}


def migrated(part):
    return part.finish in ("migrated", MIGRATED)


def go_on(ask, server, request, part):
    """The rest of an answer, and how many tokens the server has to take in for it."""
    assert part.state["exact"], part.state
    left = max(0, part.usage["prompt_tokens"] - part.state["position"]) if part.tokens == 0 else 0
    rest = {**request, "state": part.state["handle"], "max_tokens": request["max_tokens"] - part.tokens}
    del rest["prompt"]
    if left > 0:
        rest["prompt"] = request["prompt"][-left:]
    more = ask(server, rest)
    assert more.usage["cached_tokens"] == part.state["position"], (more.usage, part.state)
    taken_in = more.usage["prompt_tokens"] - more.usage["cached_tokens"]
    assert taken_in == (left or 1), (taken_in, left)  # the last token at least
    return more, taken_in


def prompt_tokens(server):
    return sum(value for name, value in server.metrics().items() if name.startswith("hippodrome_prompt_tokens_total"))


def check_migration(program, store, streams=STREAMS):
    """All streams of a server go on at another one."""
    asked = list(requests(streams))
    with Server(*program, "--state-store", store, *GRACE) as first, Server(*program, "--state-store", store) as second, \
            concurrent.futures.ThreadPoolExecutor(streams) as pool:
        alone = [pool.submit(ask, second, request) for ask, request in asked]
        alone = [done.result() for done in alone]
        before = prompt_tokens(second)
        parts = [pool.submit(ask, first, request) for ask, request in asked]
        assert wait_until(lambda: first.running() == streams), first.metrics()
        code = first.stop()
        parts = [done.result() for done in parts]
        gone = [i for i, part in enumerate(parts) if migrated(part)]
        rests = {i: pool.submit(go_on, asked[i][0], second, asked[i][1], parts[i]) for i in gone}
        taken_in = 0
        for i, (part, whole) in enumerate(zip(parts, alone)):
            said, tokens, finish = part.text, part.tokens, part.finish
            if i in rests:
                more, count = rests[i].result()
                said, tokens, finish = said + more.text, tokens + more.tokens, more.finish
                taken_in += count
            assert (said, tokens, finish) == (whole.text, whole.tokens, whole.finish), (asked[i], said, whole.text)
        halves = sum(parts[i].tokens == 0 and parts[i].state["position"] > 0 for i in gone)
        assert prompt_tokens(second) - before == taken_in, (prompt_tokens(second), before, taken_in)
        assert code == 0, code
        assert len(gone) > streams // 2 and halves == 1, (len(gone), halves)
    print(f"{store}: {len(gone)} of {streams} streams migrated, {halves} with half of its prompt", flush=True)
    return {"streams": streams, "migrated": len(gone), "with_half_a_prompt": halves, "texts_that_differ": 0,
            "tokens_taken_in": taken_in, "exit_code": code}


def completion(body):
    return http_peers.request("/v1/completions", json.dumps(body).encode())


def check_whole_answer(program, store):
    """An answer that is no stream ends so too, a call for several answers cannot, and a second signal waits for
    nobody."""
    with Server(*program, "--state-store", store, "--grace-seconds", "300") as server, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        request = {"model": "h3-demo", "prompt": "a", "max_tokens": 100000, "temperature": 0, "ignore_eos": True}
        done = pool.submit(over_http, server, {**request, "max_tokens": 300})
        assert wait_until(lambda: server.running() == 1 or done.done())
        server.signal()
        assert done.result().finish == "length"
        assert server.ended() == 0
    with Server(*program, "--state-store", store, "--grace-seconds", "3") as server, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(server.send, completion({**request, **more}))
                   for more in ({"return_state": "handle", "state_ttl": 70}, {"n": 2})]
        assert wait_until(lambda: server.running() == 3)
        server.signal()
        (status, whole), (refused, error) = (answer.result() for answer in answers)
        assert status == 200, whole
        whole = json.loads(whole[whole.index("{"):])
        assert whole["choices"][0]["finish_reason"] == "migrated", whole
        assert whole["usage"]["completion_tokens"] == len(whole["choices"][0]["token_ids"])
        assert len(whole["state"]["handle"]) == 32 and whole["state"]["expires_at"], whole["state"]
        assert refused == 503, error
        assert server.ended() == 1 and "2 requests were still running" in server.said(), server.said()
    with Server(*program, "--state-store", store, "--grace-seconds", "300") as server, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.send, completion(request))
        assert wait_until(lambda: server.running() == 1)
        server.signal()
        assert wait_until(lambda: server.get("/ready")[0] != 200)
        assert server.stop() == 1
        assert answer.result()[0] == 503


def check_slow_store(program, store):
    """A state that a store takes only when the grace period is over is not lost, and its request was not cut."""
    with Server(*program, "--state-store", store, "--grace-seconds", "1") as server, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        request = {"model": "h3-demo", "prompt": "a", "max_tokens": 100000, "temperature": 0, "ignore_eos": True}
        answer = pool.submit(over_http, server, request)
        assert wait_until(lambda: server.running() == 1)
        redis.pause(store, 1500)  # saving begins after 0.7 s, and is given up 2 s later
        server.signal()
        assert migrated(answer.result())
        assert server.ended() == 0, server.said()


def main():
    given = http_peers.arguments()
    program = given.hippodrome, given.models
    redis_server = shutil.which("redis-server")
    if redis_server is None:
        print("there is no redis-server (tools/deps --checks installs it): a part is skipped")
    seen = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder, contextlib.ExitStack() as ends:
        stores = {"directory": os.path.join(folder, "store")}
        if redis_server is not None:
            stores["redis"] = ends.enter_context(redis.running(redis_server))
            check_slow_store(program, stores["redis"])
        for turn in range(STOPS_LONG if given.long else len(stores)):
            name = list(stores)[turn % len(stores)]
            seen[name].append(check_migration(program, stores[name], STREAMS_LONG if given.long else STREAMS))
        check_whole_answer(program, stores["directory"])
    http_peers.write_report(given.json, seen)


if __name__ == "__main__":
    main()
