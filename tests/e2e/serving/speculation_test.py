"""Drafts decide about time alone: with --speculate the same tokens come, greedy and sampled, one request
at a time and eight at once.

  speculation_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

--long asks for 128 tokens behind 500 prompts.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.hostile_peers import Hippodrome
from testing.http_peers import arguments, write_report

SHORT, LONG = (12, 48), (500, 128)  # prompts, and tokens behind each
TEXTS = sorted((pathlib.Path(__file__).resolve().parents[3] / "docs").glob("*.md"))


def prompts(count):
    """Pieces of real texts; every other one begins to be copied."""
    text = "\n".join(path.read_text() for path in TEXTS)
    step = (len(text) - 1200) // count
    for i in range(count):
        piece = text[i * step:i * step + 300 + 37 * i % 500]
        yield piece if i % 2 else f"{piece}\n\n{piece[:60]}"


def body(i, prompt, tokens):
    """Greedy, or sampled at several temperatures; some with penalties and log probabilities."""
    asked = {"prompt": prompt, "max_tokens": tokens, "ignore_eos": i % 4 != 3, "temperature": (0, 0.4, 0, 0.8)[i % 4],
             "seed": i, "logprobs": 2 if i % 3 == 0 else None}
    if i % 5 == 4:
        asked["frequency_penalty"] = 0.1
    if i % 7 == 6:
        asked["stop"] = ["\n\n"]
    return {key: value for key, value in asked.items() if value is not None}


def ask(server, asked):
    client = http.client.HTTPConnection(server.http, timeout=120)
    client.request("POST", "/v1/completions", json.dumps(asked), {"Content-Type": "application/json"})
    answer = json.loads(client.getresponse().read())
    client.close()
    return answer["choices"], answer["usage"]["completion_tokens"]


def counted(server):
    client = http.client.HTTPConnection(server.http, timeout=60)
    client.request("GET", "/metrics")
    text = client.getresponse().read().decode()
    client.close()
    return [int(float(re.search(rf'^hippodrome_draft_tokens{name}_total{{model="m"}} (\S+)', text, re.M)[1]))
            for name in ("", "_accepted")]


def answers(server, bodies, at_once):
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda asked: ask(server, asked), bodies))


def compare(given, model, folder):
    count, tokens = LONG if given.long else SHORT
    bodies = [body(i, prompt, tokens) for i, prompt in enumerate(prompts(count))]
    plain = Hippodrome(given.hippodrome, model, os.path.join(folder, "plain"))
    drafting = Hippodrome(given.hippodrome, model, os.path.join(folder, "drafting"), "--speculate")
    guided = Hippodrome(given.hippodrome, model, os.path.join(folder, "guided"), "--draft", model)
    try:
        expected = answers(plain, bodies, 8)
        report = {"prompts": count, "tokens": sum(made for _, made in expected)}
        for at_once in (1, 8):
            before = counted(drafting)
            found = answers(drafting, bodies, at_once)
            drafted, accepted = (b - a for a, b in zip(before, counted(drafting)))
            report[f"{at_once} at once"] = {"different": sum(a != b for a, b in zip(found, expected)),
                                            "drafted": drafted, "accepted": accepted}
        assert counted(plain) == [0, 0], counted(plain)
        # A draft model as large as the model itself never pays, and is not asked.
        some = bodies[:12]
        assert answers(guided, some, 8) == expected[:12] and counted(guided) == [0, 0], counted(guided)
        return report
    finally:
        for server in (plain, drafting, guided):
            server.stop()


def generate(given, model, *options):
    prompt = "one two three four five, one two three four five, one two"
    command = [given.hippodrome, "generate", "--model", model, "--device", "cpu", "--prompt", prompt, "--max-tokens",
               "40", "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def refuses_other_tokens(given, model, folder):
    other = os.path.join(folder, "other")
    shutil.copytree(model, other)
    path = os.path.join(other, "vocab.json")
    with open(path) as file:
        vocabulary = json.load(file)
    names = {number: name for name, number in vocabulary.items()}
    vocabulary[names[1000]], vocabulary[names[1001]] = 1001, 1000
    with open(path, "w") as file:
        json.dump(vocabulary, file)
    run = subprocess.run([given.hippodrome, "serve", "--model", model, "--device", "cpu", "--draft", other],
                         capture_output=True, text=True)
    assert run.returncode == 1 and "token 1000 is" in run.stderr, run


def main():
    given = arguments()
    model = os.path.join(given.models, "h3-demo")
    plain = generate(given, model)
    for how in (["--speculate"], ["--draft", model]):
        assert generate(given, model, *how) == plain, how
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        refuses_other_tokens(given, model, folder)
        report = compare(given, model, folder)
    print(json.dumps(report, indent=1))
    write_report(given.json, report)
    for at_once in ("1 at once", "8 at once"):
        assert report[at_once]["different"] == 0, at_once
        assert 0 < report[at_once]["accepted"] < report[at_once]["drafted"], at_once


if __name__ == "__main__":
    main()
