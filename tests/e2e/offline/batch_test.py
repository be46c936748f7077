#!/usr/bin/env python3
"""`hippodrome batch`: every task against the server, lines that are none, killed jobs, shares, matrices.

  batch_test.py HIPPODROME MODELS_DIR GOLDEN_DIR [--long] [--json FILE] [--texts N] [--pad-to N]

The short form kills a job of a few hundred texts three times, and is a test. --long classifies --texts (200,000)
short texts by the demo encoder undisturbed, killed ten times, and in two shares, and measures its rate in turns with
`bench encode` of the same shape: the encoder's own padding, or --pad-to.
"""

import argparse
import array
import gzip
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import encoder_models
from testing.encoder_server import DIRECT, Server

WORDS = ("the dog cat loves this food great treats awful taste smell my bag came late and i it not very good bad would "
         "buy again price for never product so is was sea old man").split()
BAD = ["", "{", "[]", "5", '{"inputs": ["a", 5]}', '{"id": 9}', '{"id": {}, "inputs": "a"}', '{"inputs": "a", "x": 1}',
       '{"inputs": "a", "inputs": "b"}', '{"inputs": ""}', '{"inputs": "\\ud800"}', '{"inputs": "a\xff"}',
       '{"inputs": "' + "dog " * 3000 + '"}', '{"inputs": "' + "a" * (9 << 20) + '"}', "[" * 100000,
       '{"id": 1e999, "inputs": "a"}', '{"inputs": "a", "model": "other"}']
# Of the server's path, and lines of all kinds that it takes.
PATHS = {
    "classify": ("classifier", "/predict", [
        {"inputs": "the old man"}, {"inputs": ["the old man", "and the sea"]}, {"inputs": "sea", "raw_scores": True},
        {"inputs": [["old"], ["man", "sea"]], "parameters": {"top_k": 1}}, {"inputs": "old", "top_k": 1}]),
    "embed": ("filler", "/embed", [
        {"inputs": "the old man"}, {"inputs": ["the old man", "sea"]}, {"inputs": [[5, 6]], "normalize": False}]),
    "fill-mask": ("filler", "/fill_mask", [
        {"inputs": "the [MASK] man"}, {"inputs": "[MASK] [MASK]", "top_k": 2},
        {"inputs": ["the [MASK]"], "targets": ["by"]}]),
    "tag": ("tagger", "/token_classification", [
        {"inputs": "the old man"}, {"inputs": ["the", "old"]}, {"inputs": "sea", "aggregation_strategy": "none"}]),
    "answer": ("answerer", "/question_answering", [
        {"inputs": {"question": "who is old", "context": "the old man and the sea"}},
        {"inputs": {"question": "who", "context": "the man"}, "top_k": 3}]),
    "generate": ("h3", "/v1/completions", [
        {"prompt": "It was a", "max_tokens": 9, "temperature": 0}, {"prompt": "He said", "max_tokens": 7, "seed": 5},
        {"prompt": ["One", [5, 6]], "n": 2, "seed": 3, "logprobs": 2, "echo": True, "stop": "."}]),
}


def texts(count, seed=1):
    """Lines of short texts, the same for the same seed."""
    chance = random.Random(seed)
    for i in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randint(3, 20)))
        yield json.dumps({"id": f"text-{i}", "inputs": text})


def write(path, lines):
    with open(path, "w", encoding="latin-1") as file:
        file.writelines(line + "\n" for line in lines)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


class Jobs:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, task, model, source, output, *options):
        return [self.program, "batch", "--task", task, "--model", model, "--input", source, "--output", output,
                "--device", "cpu", *options]

    def run(self, *job, status=0, **how):
        """What it said on standard error."""
        done = subprocess.run(self.command(*job), stderr=subprocess.PIPE, text=True, **how)
        assert done.returncode == status, done.stderr
        return done.stderr

    def kill_at(self, bytes, output, *job):
        """Kills the job when its output is so large. Whether it was still running."""
        process = subprocess.Popen(self.command(*job), stderr=subprocess.DEVNULL)
        while size(output) < bytes and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        return process.wait() != 0


def answers_are_the_servers(jobs, program, models, golden):
    """Of every task, byte for byte."""
    directories = encoder_models.make_models(golden, jobs.folder)
    directories["h3"] = os.path.join(models, "h3-demo")
    server = Server(program, directories, jobs.path("log"))
    compared = 0

    def ask(path, body):
        request = urllib.request.Request(server.url + path, json.dumps(body).encode())
        with DIRECT.open(request) as response:
            return response.read().decode()

    try:
        for task, (model, path, bodies) in PATHS.items():
            source = write(jobs.path(task), [json.dumps({"id": i, **body}) for i, body in enumerate(bodies)])
            target = jobs.path(task + ".out")
            said = jobs.run(task, f"{model}={directories[model]}", source, target, "--weights", "f32")
            assert f"{len(bodies)} lines, 0 errors" in said, said + read(target).decode()
            for i, (body, record) in enumerate(zip(bodies, read(target).decode().splitlines())):
                answer = ask(path, {**body, "model": model})
                if task == "generate":
                    answer = {name: json.loads(answer)[name] for name in ("choices", "usage")}
                    answer["usage"].pop("prompt_tokens_details")
                    assert json.loads(record) == {"id": i, "result": answer}, (body, record, answer)
                else:
                    assert record == f'{{"id":{i},"result":{answer}}}', (body, record, answer)
                compared += 1
        compared += scores_are_the_servers(jobs, ask, directories["h3"])
    finally:
        server.stop()
    return compared


def scores_are_the_servers(jobs, ask, model):
    """As the sums of what /v1/completions says of each token."""
    context, continuations = "It was a dark", [" night", " and stormy day"]
    source = write(jobs.path("score"), [json.dumps({"context": context, "continuations": continuations})])
    jobs.run("score", model, source, jobs.path("score.out"), "--weights", "f32")
    scores = json.loads(read(jobs.path("score.out")))["result"]["scores"]

    def tokens(text):
        return json.loads(ask("/tokenize", {"model": "h3", "prompt": text}))["tokens"]

    for continuation, score in zip(continuations, scores, strict=True):
        ids = tokens(continuation)
        body = {"model": "h3", "prompt": tokens(context) + ids, "echo": True, "max_tokens": 0, "logprobs": 0}
        said = json.loads(ask("/v1/completions", body))["choices"][0]["logprobs"]["token_logprobs"][-len(ids):]
        assert score["log_probability"] == sum(said) and score["tokens"] == len(ids), (score, said)
    return len(scores)


def bad_lines_stand_in_place(jobs, encoder):
    good = list(texts(len(BAD) + 1))
    lines = [line for pair in zip(good, BAD) for line in pair] + good[-1:]
    source = write(jobs.path("bad"), lines)
    said = jobs.run("classify", encoder, source, jobs.path("bad.out"), "--pad-to", "32")
    assert f"{len(lines)} lines, {len(BAD)} errors" in said, said
    records = [json.loads(record) for record in read(jobs.path("bad.out")).splitlines()]
    assert ["error" in record for record in records] == [i % 2 == 1 for i in range(len(lines))], records
    assert all(record["error"]["message"] for record in records[1::2])
    jobs.run("classify", encoder, write(jobs.path("good"), good), jobs.path("good.out"), "--pad-to", "32")
    assert read(jobs.path("good.out")).splitlines() == read(jobs.path("bad.out")).splitlines()[::2]
    cut = jobs.run("classify", encoder, source, jobs.path("cut.out"), "--pad-to", "32", "--truncate")
    assert f"{len(BAD) - 1} errors" in cut, cut
    return len(BAD)


def streams_and_packed_files(jobs, encoder):
    lines = list(texts(50))
    plain = write(jobs.path("plain"), lines)
    with gzip.open(jobs.path("packed.gz"), "wt") as file:
        file.writelines(line + "\n" for line in lines)
    pad = ("--pad-to", "32")
    jobs.run("classify", encoder, plain, jobs.path("plain.out"), *pad)
    jobs.run("classify", encoder, jobs.path("packed.gz"), jobs.path("packed.out"), *pad)
    done = subprocess.run(jobs.command("classify", encoder, "-", "-", *pad), input=read(plain), capture_output=True,
                          check=True)
    assert read(jobs.path("plain.out")) == read(jobs.path("packed.out")) == done.stdout
    whole = read(jobs.path("packed.gz"))
    with open(jobs.path("torn.gz"), "wb") as file:
        file.write(whole[:-20])
    said = jobs.run("classify", encoder, jobs.path("torn.gz"), jobs.path("torn.out"), *pad, status=1)
    assert "the gzip data ends early" in said, said
    for output, options, why in (("plain.out", ("--pad-to", "33"), 'pad-to: "32" then, "33" now'),
                                 ("plain", pad, "is there, but no"), ("x.gz", pad, "not packed"),
                                 ("x.npy", pad, "--task embed alone")):
        said = jobs.run("classify", encoder, plain, jobs.path(output), *options,
                        status=1 if options != pad or output == "plain" else 2)
        assert why in said, said
    assert "is complete: 50 lines, 0 errors" in jobs.run("classify", encoder, plain, jobs.path("plain.out"), *pad)


def matrices_have_the_embeddings(jobs, encoder):
    lines = list(texts(60))
    lines[7] = '{"id": "bad", "inputs": ["a", "b"]}'
    source = write(jobs.path("embed-lines"), lines)
    for name in ("e.jsonl", "e.npy", "e.safetensors"):
        jobs.run("embed", encoder, source, jobs.path(name), "--pad-to", "32")
    # Also from a beginning.
    for name, keep in (("e.npy", 5000), ("e.safetensors", 300)):
        whole = read(jobs.path(name))
        with open(jobs.path("torn-" + name), "wb") as file:
            file.write(bytes(128) + whole[128:keep])
        shutil.copy(jobs.path(name + ".errors.jsonl"), jobs.path("torn-" + name + ".errors.jsonl"))
        with open(jobs.path(name + ".job")) as job, open(jobs.path("torn-" + name + ".job"), "w") as copy:
            json.dump({**json.load(job), "totals": None}, copy)
        jobs.run("embed", encoder, source, jobs.path("torn-" + name), "--pad-to", "32")
        assert read(jobs.path("torn-" + name)) == whole
        assert read(jobs.path("torn-" + name + ".errors.jsonl")) == read(jobs.path(name + ".errors.jsonl"))
    records = [json.loads(record) for record in read(jobs.path("e.jsonl")).splitlines()]
    width = len(records[0]["result"][0])
    npy, tensors = read(jobs.path("e.npy")), read(jobs.path("e.safetensors"))
    assert npy[:10] == b"\x93NUMPY\x01\x00v\x00" and f"'shape': ({len(lines)}, {width})" in npy[:128].decode("latin-1")
    begin = 8 + struct.unpack("<Q", tensors[:8])[0]
    assert json.loads(tensors[8:begin])["embeddings"]["shape"] == [len(lines), width]
    assert npy[128:] == tensors[begin:]
    rows = array.array("f", npy[128:])
    for i, record in enumerate(records):
        row = rows[i * width:(i + 1) * width]
        if i == 7:
            assert all(math.isnan(value) for value in row)
        else:
            assert row == array.array("f", record["result"][0]), i
    error = json.loads(read(jobs.path("e.npy.errors.jsonl")))
    assert error["row"] == 7 and error["id"] == "bad", error
    return len(lines)


def killed(jobs, whole, kills, *job):
    """Kills the job at random moments, until it may end. Kills that met it running."""
    chance, output = random.Random(3), job[3]
    moments = sorted(chance.random() * size(whole) for _ in range(kills))
    met = sum(jobs.kill_at(moment, output, *job) for moment in moments)
    jobs.run(*job)
    assert read(output) == read(whole), f"{output} differs from {whole}"
    return met


def in_shares(jobs, whole, task, model, source, *options, mpirun=None):
    """Two shares, one of them killed: joined they are the whole."""
    output = jobs.path("shared")
    if mpirun:
        subprocess.run([*mpirun, *jobs.command(task, model, source, output, *options)], check=True,
                       stderr=subprocess.DEVNULL)
    else:
        first = (task, model, source, output, "--share", "0/2", *options)
        jobs.kill_at(size(whole) // 5, output + ".part-00000-of-00002", *first)
        jobs.run(task, model, source, output, "--share", "1/2", *options)
        assert not os.path.exists(output + ".manifest.json")
        jobs.run(*first)
    with open(output + ".manifest.json") as file:
        manifest = json.load(file)
    parts = [read(jobs.path(part["path"])) for part in manifest["parts"]]
    assert b"".join(parts) == read(whole) and len(parts) == 2
    assert [part["lines"] for part in manifest["parts"]] == [part.count(b"\n") for part in parts]
    assert manifest["lines"] == read(whole).count(b"\n") and manifest["errors"] == read(whole).count(b'"error":')
    for name in os.listdir(jobs.folder):
        if name.startswith("shared"):
            os.remove(jobs.path(name))
    return [part["lines"] for part in manifest["parts"]]


def bench_rate(program, encoder, length):
    """Texts of `length` tokens each second."""
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([program, "bench", "encode", "--config", os.path.join(encoder, "config.json"), "--length",
                        str(length), "--batch", str(max(1, 4096 // length)), "--json", report.name,
                        "--device", "cpu"], check=True, stdout=subprocess.DEVNULL)
        return json.load(open(report.name))["results"][0]["value"] / length


def rates(jobs, encoder, length, options, seconds):
    """In turns: texts each second of `bench encode`, which says its best, and of jobs of about so many seconds."""
    bench, job = [], []
    count = int(bench_rate(jobs.program, encoder, length) * seconds)
    for i in range(10):
        bench.append(round(bench_rate(jobs.program, encoder, length), 1))
        source, output = write(jobs.path("rate"), texts(count, i)), jobs.path("rate.out")
        begin = time.monotonic()
        jobs.run("classify", encoder, source, output, *options)
        job.append(round(count / (time.monotonic() - begin), 1))
        for name in (output, output + ".job"):
            os.remove(name)
        print(bench[-1], job[-1], flush=True)
    return {"bench_texts_per_second": bench, "texts_per_second": job, "best_of_best": round(max(job) / max(bench), 3)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("golden")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--sanitized", action="store_true", help="fewer texts: the program is slow")
    parser.add_argument("--json")
    parser.add_argument("--texts", type=int, default=200000)
    parser.add_argument("--pad-to", type=int)
    parser.add_argument("--mpirun", help="also two ranks of it: the command with its options")
    given = parser.parse_args()
    encoder = os.path.join(given.models, "bigs-demo")
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        jobs = Jobs(given.hippodrome, folder)
        report = {"answers_as_the_server": answers_are_the_servers(jobs, given.hippodrome, given.models, given.golden),
                  "bad_lines": bad_lines_stand_in_place(jobs, encoder),
                  "rows": matrices_have_the_embeddings(jobs, encoder)}
        streams_and_packed_files(jobs, encoder)
        pad = given.pad_to or (None if given.long else 64)
        options = ("--pad-to", str(pad)) if pad else ()
        count, kills = (given.texts, 10) if given.long else (150 if given.sanitized else 600, 3)
        source, whole = write(jobs.path("texts"), texts(count)), jobs.path("whole")
        begin = time.monotonic()
        jobs.run("classify", encoder, source, whole, *options)
        report |= {"texts": count, "padded_to": pad or "the model's length",
                   "seconds_undisturbed": round(time.monotonic() - begin, 1)}
        met = killed(jobs, whole, kills, "classify", encoder, source, jobs.path("killed"), *options)
        report |= {"kills": kills, "kills_met_it_running": met, "bytes": size(whole), "bytes_that_differ": 0}
        report["lines_of_shares"] = in_shares(jobs, whole, "classify", encoder, source, *options)
        if given.mpirun:
            report["lines_of_ranks"] = in_shares(jobs, whole, "classify", encoder, source, *options,
                                                 mpirun=given.mpirun.split())
        if given.long:
            with open(os.path.join(encoder, "config.json")) as file:
                length = pad or json.load(file)["max_position_embeddings"]
            report |= rates(jobs, encoder, length, options, 4)
    print(json.dumps(report, indent=1))
    if given.json:
        with open(given.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
