#!/usr/bin/env python3
"""Random contexts with continuations, in token ids: the sums that lm-evaluation-harness reads from `echo` and
`logprobs` in batches of 1 to 32, those of gRPC's Score, and those of `hippodrome eval choices` are equal bit
for bit. By hand, for the clients come from PyPI; tests/server/score_pairs_test.cc is the short form.

    python3 -m venv venv
    venv/bin/pip install 'lm_eval[api]' grpcio grpcio-reflection
    venv/bin/python tests/clients/score_pairs.py build/release/bin/hippodrome [PAIRS]

It serves deploy/models/h3-demo itself. The output of a run with 1,000 pairs is in score_pairs.txt.
"""
import importlib.metadata
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", LMEVAL_LOG_LEVEL="ERROR")
import grpc
import requests
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import \
    ProtoReflectionDescriptorDatabase
from lm_eval.models.openai_completions import LocalCompletionsAPI

import local_server
from local_server import MODEL, Server, check, eval_choices, write_lines

HIPPODROME = sys.argv[1]
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
VOCABULARY, END_OF_TEXT = local_server.vocabulary()
CHOICE = random.Random(14)


def bits(value):
    return struct.pack("<d", value)


def random_tokens(length):
    """One in 16 ends a text; bytes by themselves, most of which are not UTF-8, come often."""
    def token():
        if CHOICE.random() < 1 / 16:
            return END_OF_TEXT
        return CHOICE.randrange(256 if CHOICE.random() < 0.25 else VOCABULARY)
    return [token() for _ in range(length)]


def likeliest(context):
    """What the model goes on with."""
    answer = subprocess.run([HIPPODROME, "generate", "--model", MODEL, "--prompt-ids",
                             ",".join(map(str, context)), "--max-tokens", "8", "--temperature", "0",
                             "--ignore-eos", "--json", "--device", "cpu"], check=True, capture_output=True)
    return json.loads(answer.stdout)["token_ids"]


def random_pairs():
    pairs = []
    for i in range(PAIRS):
        context = random_tokens(CHOICE.randint(300, 600) if i % 20 == 19 else CHOICE.randint(1, 80))
        pairs.append((context, likeliest(context) if i % 50 == 7
                      else random_tokens(CHOICE.randint(1, 16))))
    return pairs


def in_process(folder, pairs):
    questions = [{"context": c, "choices": [k], "gold": 0} for c, k in pairs]
    _, scores = eval_choices(HIPPODROME, folder, write_lines(folder / "pairs.jsonl", questions))
    return [(s["log_probabilities"][0], s["greedy"][0]) for s in scores]


def over_http(server, pairs):
    """In batches of 1, 2, .. 32, 1, .."""
    model = LocalCompletionsAPI(model="h3-demo", base_url=server.completions, batch_size=32)
    found, size, lengths = [], 1, 0
    while len(found) < len(pairs):
        batch = pairs[len(found):len(found) + size]
        answer = model.model_call(messages=[c + k for c, k in batch], generate=False)
        lengths += sum(len(choice["logprobs"][part]) == len(c) + len(k) + 1
                       for choice, (c, k) in zip(answer["choices"], batch)
                       for part in ("tokens", "token_logprobs", "top_logprobs", "text_offset"))
        found += model.parse_logprobs(outputs=answer, ctxlens=[len(c) for c, _ in batch])
        size = size % 32 + 1
    check("HTTP: all four lists have an entry for each token and for the one that was made",
          lengths == 4 * len(pairs), f"{lengths} lists")
    return found


class Grpc:
    def __init__(self, server):
        self.channel = grpc.insecure_channel(server.grpc)
        self.pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))
        self.request, response = (message_factory.GetMessageClass(
            self.pool.FindMessageTypeByName(f"hippodrome.v1.Score{end}")) for end in ("Request", "Response"))
        self.score = self.channel.unary_unary("/hippodrome.v1.Generation/Score",
                                              request_serializer=lambda m: m.SerializeToString(),
                                              response_deserializer=response.FromString)

    def scores(self, context, continuations):
        answer = self.score(self.request(token_ids={"ids": context},
                                         continuations=[{"token_ids": {"ids": k}} for k in continuations]))
        return [(s.log_probability, s.greedy) for s in answer.scores]


def compare(name, found, expected):
    sums = sum(bits(f[0]) == bits(e[0]) for f, e in zip(found, expected))
    greedy = sum(f[1] == e[1] for f, e in zip(found, expected))
    check(f"{name} = in process", len(found) == len(expected) == sums == greedy,
          f"{sums} of {len(expected)} sums bit for bit, {greedy} greedy flags")


def end_of_text(server):
    """An end of text that is made has its entry, which a bias does not change."""
    answer = requests.post(server.completions, json={
        "prompt": [5, 6, 7], "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True,
        "logit_bias": {str(END_OF_TEXT): 100}}).json()["choices"][0]
    (expected, _), = Grpc(server).scores([5, 6, 7], [[END_OF_TEXT]])
    check("the end of text is the last entry", answer["logprobs"]["tokens"][3:] == ["<|endoftext|>"]
          and bits(answer["logprobs"]["token_logprobs"][3]) == bits(expected), expected)


def names(server, pairs):
    """Alternatives with one name would hide each other."""
    answer = requests.post(server.completions, json={
        "prompt": [c + k for c, k in pairs], "max_tokens": 0, "logprobs": 20, "echo": True}).json()
    entries = [len(top) for choice in answer["choices"]
               for top in choice["logprobs"]["top_logprobs"][1:]]
    names = {name for choice in answer["choices"] for top in choice["logprobs"]["top_logprobs"][1:]
             for name in top}
    check("20 alternatives have 20 names, or 21 with the token itself", set(entries) <= {20, 21},
          f"{len(entries)} entries, {len(names)} names, {sum(n.startswith('bytes:') for n in names)} of bytes "
          "that are not UTF-8")


def cap(server):
    codes = {count: requests.post(server.completions, json={
        "prompt": "The king", "max_tokens": 1, "logprobs": count}).status_code for count in (20, 21, 100)}
    check("logprobs beyond 20 are refused", codes == {20: 200, 21: 400, 100: 400}, codes)


def run(folder):
    pairs = random_pairs()
    tokens = sum(len(c) + len(k) for c, k in pairs)
    expected = in_process(folder, pairs)
    print(f"{len(pairs)} pairs, {tokens} tokens, the continuations of {sum(g for _, g in expected)} are the "
          "likeliest")
    check("some are the likeliest, and most are not", 0 < sum(g for _, g in expected) < PAIRS / 4)
    with Server(HIPPODROME, folder) as server:
        compare("lm_eval over HTTP, batches of 1 to 32", over_http(server, pairs), expected)
        client = Grpc(server)
        compare("Score over gRPC, one continuation",
                [client.scores(c, [k])[0] for c, k in pairs], expected)
        context = pairs[0][0]
        others = [k for _, k in pairs[:128]]
        compare("Score over gRPC, 128 continuations of a context", client.scores(context, others),
                in_process(folder, [(context, k) for k in others]))
        end_of_text(server)
        names(server, pairs[:32])
        cap(server)


for package in ["lm_eval", "grpcio"]:
    print(package, importlib.metadata.version(package))
with tempfile.TemporaryDirectory() as scratch:
    run(pathlib.Path(scratch))
print("failures:", local_server.failures)
sys.exit(local_server.failures > 0)
