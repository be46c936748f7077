"""Saved states outlive kill -9: what goes on from them is the generation that nothing interrupted, bit for bit.

  state_crashes_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

Sequences of prompts of different lengths, greedy and drawn, run once as a whole. Then each run ends at a random
token, with its state in a directory; the server is killed as soon as the answers are in, and another one goes on
from the handles. Tokens, their log probabilities and those of the likeliest tokens must be those of the whole run,
and nothing may be taken in again. --long does so for 1,000 positions, the short form for 5.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import http_peers
from testing.http_peers import Server

TOGETHER = 5  # states that cross one kill
LIKELIEST = 5
TAKEN_IN = 'hippodrome_prompt_tokens_total{model="h3-demo"}'


class Run:
    """A sequence that is generated as a whole, and in two pieces."""

    def __init__(self, number, chance, tokens):
        self.tokens = tokens
        # Around and beyond what is transformed, and single tokens.
        length = chance.choice((1, 7, 63, 64, 65, chance.randint(2, 250), chance.randint(256, 600)))
        self.body = {"model": "h3-demo", "prompt": [5 + chance.randrange(400) for _ in range(length)],
                     "ignore_eos": True, "logprobs": LIKELIEST}
        if number % 2:
            self.body.update(temperature=1, top_k=50, frequency_penalty=0.5, seed=number)
        else:
            self.body["temperature"] = 0
        self.whole = None


def ask(server, body):
    client = http.client.HTTPConnection(*server.http, timeout=300)
    try:
        client.request("POST", "/v1/completions", json.dumps(body))
        answer = client.getresponse()
        text = answer.read()
        assert answer.status == 200, (answer.status, text, body)
        return json.loads(text)
    finally:
        client.close()


def said(answer):
    """Tokens and log probabilities, one by one."""
    choice = answer["choices"][0]
    scores = choice["logprobs"]
    return list(zip(choice["token_ids"], scores["token_logprobs"], scores["top_logprobs"]))


def all_at_once(server, bodies):
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        return list(pool.map(lambda body: ask(server, body), bodies))


def export(server, places):
    """The first pieces, and the handles behind them."""
    bodies = [{**run.body, "max_tokens": position, "return_state": "handle"} for run, position in places]
    return [(said(answer), answer["state"]) for answer in all_at_once(server, bodies)]


def go_on(server, places, first):
    """The rests; and the prompt tokens that were taken in beyond the last tokens, which no state has."""
    before = server.metrics()[TAKEN_IN]
    bodies = [{**run.body, "prompt": [], "max_tokens": run.tokens - position, "state": state["handle"]}
              for (run, position), (_, state) in zip(places, first)]
    for body in bodies:
        body.pop("seed", None)  # the state has it
    answers = all_at_once(server, bodies)
    again = server.metrics()[TAKEN_IN] - before - len(places)
    for answer, (_, state) in zip(answers, first):
        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached == state["position"], (cached, state)
    return [said(answer) for answer in answers], again


def differences(run, position, one, two):
    """Of a whole run: tokens, and log probabilities, that the pieces have otherwise."""
    pieces = one + two
    assert len(pieces) == len(run.whole) and len(one) == position
    return (sum(a[0] != b[0] for a, b in zip(pieces, run.whole)),
            sum(a[1:] != b[1:] for a, b in zip(pieces, run.whole)))


def cross(arguments, weights, positions, sequences, tokens, seed):
    chance = random.Random(seed)
    runs = [Run(i, chance, tokens) for i in range(sequences)]
    report = {"weights": weights, "positions": 0, "kills": 0, "tokens_compared": 0, "tokens_that_differ": 0,
              "log_probabilities_that_differ": 0, "tokens_taken_in_again": 0}
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        options = ("--state-store", os.path.join(folder, "states"), "--weights", weights)
        start = lambda: Server(arguments.hippodrome, arguments.models, *options)
        server = start()
        try:
            for run in runs:
                run.whole = said(ask(server, {**run.body, "max_tokens": tokens}))
            while report["positions"] < positions:
                places = [(chance.choice(runs), chance.randint(1, tokens - 1)) for _ in range(TOGETHER)]
                first = export(server, places)
                server.process.kill()
                server.__exit__()
                server = start()
                rests, again = go_on(server, places, first)
                for (run, position), (one, _), two in zip(places, first, rests):
                    wrong = differences(run, position, one, two)
                    report["tokens_that_differ"] += wrong[0]
                    report["log_probabilities_that_differ"] += wrong[1]
                    report["tokens_compared"] += tokens
                report["tokens_taken_in_again"] += int(again)
                report["positions"] += len(places)
                report["kills"] += 1
        finally:
            server.__exit__()
    return report


def main():
    arguments = http_peers.arguments()
    began = time.monotonic()
    if arguments.long:
        found = [cross(arguments, weights, 500, 20, 96, seed) for seed, weights in enumerate(("f32", "bf16"))]
    else:
        found = [cross(arguments, "f32", 5, 4, 24, 2)]
    report = {"runs": found, "seconds": round(time.monotonic() - began)}
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)
    for one in found:
        for name in ("tokens_that_differ", "log_probabilities_that_differ", "tokens_taken_in_again"):
            assert one[name] == 0, (name, one)


if __name__ == "__main__":
    sys.exit(main())
