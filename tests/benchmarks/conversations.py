#!/usr/bin/env python3
"""Conversations that go on from the state of the turn before, against the same ones sent as growing prompts.

  conversations.py HIPPODROME MODELS_DIR [--conversations N] [--turns N] [--json FILE] [--weights f32|bf16]

Each turn brings 30 tokens of a speaker and 30 new ones of the model, greedily. The same conversations run in four
ways: with `return_state: handle`; once more so, which must give the same tokens; as growing prompts; and as growing
prompts without the prefix cache. For each: tokens that were processed, seconds, and milliseconds to the first
token of each turn. A state that was stepped is rounded otherwise than one that was prefilled, so the texts may part
where two tokens are as good as equally likely: the report has, for each such place, by how much the log
probabilities of the two differ in either run. One run prefers the first token and the other the second, so that
rounding moved their difference by the sum of both. The error bound beside it is the most by which rounding moves
that difference where the texts are still the same.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
from testing.http_peers import write_report
from testing.processes import Process

SPOKEN, ANSWERED = 30, 30  # tokens of a turn
PREFIX_SLOTS = 64
WORDS = ("the a of and to in was it he she they with said had very little great old house night day man woman sea "
         "ship king road door hand eyes heart long time never always came went saw heard spoke thought knew").split()


class Client:
    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=600)

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.read().decode()}")
        return answer

    def tokens(self, text):
        return json.loads(self.post("/tokenize", {"prompt": text}).read())["tokens"]

    def turn(self, prompt, **fields):
        """The answer to one turn, token by token."""
        begin = time.monotonic()
        answer = self.post("/v1/completions", {
            "prompt": prompt, "max_tokens": ANSWERED, "temperature": 0, "ignore_eos": True, "logprobs": 2,
            "stream": True, "stream_options": {"include_usage": True}, **fields})
        found = {"tokens": [], "margins": [], "first": None, "state": None}
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            for choice in event["choices"]:
                if found["first"] is None and choice["token_ids"]:
                    found["first"] = time.monotonic() - begin
                found["tokens"] += choice["token_ids"]
                for top in (choice["logprobs"] or {}).get("top_logprobs") or []:
                    best = sorted(top.values(), reverse=True)
                    found["margins"].append(best[0] - best[1] if len(best) > 1 else 0.0)
            found["usage"] = event["usage"] or found.get("usage")
            found["state"] = event.get("state") or found["state"]
        found["seconds"] = time.monotonic() - begin
        return found


def processed(usage):
    """Prompt tokens that the model took in for a turn."""
    return usage["prompt_tokens"] - (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


def by_handle(client, speakers):
    handle = None
    for spoken in speakers:
        fields = {"state": handle} if handle else {}
        found = client.turn(spoken, return_state="handle", cache_prompt=False, **fields)
        handle = found["state"]["handle"]
        yield found


def by_prompt(client, speakers, **fields):
    text = []
    for spoken in speakers:
        found = client.turn(text + spoken, **fields)
        text += spoken + found["tokens"]
        yield found


def run(client, conversations, way, **fields):
    """All conversations in one way, one after the other."""
    begin = time.monotonic()
    turns = [list(way(client, speakers, **fields)) for speakers in conversations]
    return {"seconds": round(time.monotonic() - begin, 2), "turns": turns}


def summary(found):
    turns = found["turns"]
    return {"seconds": found["seconds"], "prompt_tokens_processed": sum(processed(t["usage"]) for c in turns for t in c),
            "first_token_ms_by_turn": [round(1000 * statistics.median(c[i]["first"] for c in turns), 3)
                                       for i in range(len(turns[0]))]}


def tokens_of(found):
    return [[t["tokens"] for t in c] for c in found["turns"]]


def partings(one, other):
    """Where conversations first differ: which, at which turn and token, and the margins between the two best
    tokens there."""
    found = []
    for number, (a, b) in enumerate(zip(one["turns"], other["turns"])):
        for turn, (x, y) in enumerate(zip(a, b)):
            if x["tokens"] != y["tokens"]:
                at = next(i for i, (p, q) in enumerate(zip(x["tokens"], y["tokens"])) if p != q)
                margins = [x["margins"][at], y["margins"][at]]
                found.append({"conversation": number, "turn": turn, "token": at, "margins": margins,
                              "moved": sum(margins)})
                break
    return found


def drift(one, other):
    """The largest difference between margins of the same token while the texts are the same."""
    worst = 0.0
    for a, b in zip(one["turns"], other["turns"]):
        for x, y in zip(a, b):
            if x["tokens"] != y["tokens"]:
                break
            worst = max([worst] + [abs(p - q) for p, q in zip(x["margins"], y["margins"])])
    return worst


def main():
    parser = argparse.ArgumentParser()
    for place in ("hippodrome", "models"):
        parser.add_argument(place)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--weights", default="f32")
    parser.add_argument("--json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        server = Process([given.hippodrome, "serve", "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                          "--weights", given.weights, "--prefix-slots", str(PREFIX_SLOTS), "--model", os.path.join(given.models, "h3-demo")],
                         os.path.join(folder, "log"))
        try:
            client = Client(server.listens("http"))
            chance = random.Random(1)
            conversations = [[client.tokens(" " + " ".join(chance.choices(WORDS, k=4 * SPOKEN)))[:SPOKEN]
                              for _ in range(given.turns)] for _ in range(given.conversations)]
            handles = run(client, conversations, by_handle)
            again = run(client, conversations, by_handle)
            cached = run(client, conversations, by_prompt)
            cold = run(client, conversations, by_prompt, cache_prompt=False)
        finally:
            server.stop()
    parted = partings(handles, cold)
    report = {"command": " ".join(["conversations.py", *(os.path.basename(a) for a in sys.argv[1:])]),
              "handles": summary(handles), "growing_prompts": summary(cached),
              "growing_prompts_without_cache": summary(cold),
              "handles_again_equal": tokens_of(handles) == tokens_of(again),
              "cached_equal_to_cold": tokens_of(cached) == tokens_of(cold),
              "error_bound": drift(handles, cold), "partings": parted,
              "most_moved_at_a_parting": max((p["moved"] for p in parted), default=0.0)}
    print(json.dumps({k: v for k, v in report.items() if k != "partings"}, indent=1))
    write_report(given.json, report)
    assert report["handles_again_equal"] and report["cached_equal_to_cold"]
    assert report["most_moved_at_a_parting"] <= report["error_bound"]


if __name__ == "__main__":
    main()
