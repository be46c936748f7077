#!/usr/bin/env python3
"""What one API key learns of another's prompts from the time that answers take: nothing.

  tenant_probe.py HIPPODROME MODELS_DIR [--prompts N] [--json FILE]

Anna asks prompts, whose states the tree of prefixes keeps. In random order Bert asks each of them too, and as many
that nobody has asked; none may have cached tokens, and by the test of Kolmogorov and Smirnov his times to the first
token must be of one distribution (p > 0.05). That the same test tells what is cached is shown by Anna, who asks hers
again. Handles of Anna's are not found by Bert.
"""

import argparse
import http.client
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
from testing import api_keys
from testing.http_peers import Server, write_report

LENGTH = 400  # tokens of a prompt
AT_ONCE = 20  # prompts that Anna asks before Bert comes
OTHERS = 0.05  # the least p of times that are of one distribution


class Client:
    def __init__(self, server, key):
        self.connection = http.client.HTTPConnection(*server.http, timeout=120)
        self.fields = {"Authorization": f"Bearer {key}"}

    def ask(self, body):
        self.connection.request("POST", "/v1/completions", json.dumps({"model": "h3-demo", **body}), self.fields)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def first_token(self, prompt):
        """Milliseconds to the first token, and cached tokens."""
        begin = time.perf_counter()
        status, answer = self.ask({"prompt": prompt, "max_tokens": 1})
        took = 1000 * (time.perf_counter() - begin)
        assert status == 200, answer
        return took, answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def one_distribution(a, b):
    """The p of the two-sample test, asymptotically."""
    values = sorted([(value, 1 / len(a)) for value in a] + [(value, -1 / len(b)) for value in b])
    total = largest = 0.0
    for i, (value, step) in enumerate(values):
        total += step
        if i + 1 == len(values) or values[i + 1][0] != value:
            largest = max(largest, abs(total))
    root = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    x = (root + 0.12 + 0.11 / root) * largest
    if x < 0.2:
        return 1.0
    return min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 101)))


def probe(anna, bert, prompts):
    chance = random.Random(1)
    new = lambda: [5 + chance.randrange(400) for _ in range(LENGTH)]
    times = {"bert_what_anna_asked": [], "bert_what_nobody_asked": [], "anna_again": []}
    cached = dict.fromkeys(times, 0)
    while len(times["anna_again"]) < prompts:
        asked = [new() for _ in range(AT_ONCE)]
        for prompt in asked:
            anna.first_token(prompt)
        probes = [(bert, "bert_what_anna_asked", prompt) for prompt in asked]
        probes += [(bert, "bert_what_nobody_asked", new()) for _ in asked]
        chance.shuffle(probes)
        for client, kind, prompt in probes + [(anna, "anna_again", prompt) for prompt in asked]:
            took, found = client.first_token(prompt)
            times[kind].append(took)
            cached[kind] += found
    return times, cached


def describe(times, cached):
    quarters = {kind: [round(value, 3) for value in statistics.quantiles(values, n=4)]
                for kind, values in times.items()}
    return {"prompts": len(times["anna_again"]), "tokens_of_a_prompt": LENGTH, "cached_tokens": cached,
            "quartiles_ms": quarters,
            "p_bert": one_distribution(times["bert_what_anna_asked"], times["bert_what_nobody_asked"]),
            "p_anna": one_distribution(times["anna_again"], times["bert_what_nobody_asked"])}


def main():
    parser = argparse.ArgumentParser()
    for place in ("hippodrome", "models"):
        parser.add_argument(place)
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        made = [api_keys.new(given.hippodrome, name) for name in ("anna", "bert")]
        path = os.path.join(folder, "keys.json")
        api_keys.write(path, [entry for _, entry in made])
        with Server(given.hippodrome, given.models, "--api-keys", path, "--prefix-slots", str(4 * AT_ONCE),
                    key=made[0][0]) as server:
            anna, bert = (Client(server, secret) for secret, _ in made)
            handle = anna.ask({"prompt": "It was", "max_tokens": 2, "return_state": "handle"})[1]["state"]["handle"]
            stolen = bert.ask({"state": handle, "max_tokens": 1})[0]
            report = {**describe(*probe(anna, bert, given.prompts)), "annas_handle_from_bert": stolen}
    print(json.dumps(report, indent=1))
    write_report(given.json, report)
    assert stolen == 404, stolen
    assert report["cached_tokens"]["bert_what_anna_asked"] == 0 and report["cached_tokens"]["anna_again"] > 0
    assert report["p_bert"] > OTHERS > report["p_anna"], report


if __name__ == "__main__":
    main()
