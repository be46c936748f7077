#!/usr/bin/env python3
"""gRPC streams of a decoder with weights of every type, beside what bench generate reaches.

  tests/benchmarks/serve_widths.py [--hippodrome FILE] [--rounds N] [--streams N,N...] [--json FILE]

Makes a model of the size of h3-125m that was trained for a single step, and in each round, for every type of weights and
number of streams, decodes so many sequences by `bench generate`, and then has as many streams of `bench serve`, on the
same processors. Both decode around the same position: bench generate from 128 tokens on, streams from 16 to 272. A
figure is the median of the rounds. `of_bench` is the rate of the streams against that of bench generate, and
`without_client` the same with the processors that the client took set apart.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from testing import decoder_models, encoder_server  # noqa: E402

PROMPT, TOKENS = 16, 256


def make_model(program, folder):
    """The shape of h3-125m, with the demo's tokenizer."""
    config = {"model_type": "h3", "d_model": 768, "n_layer": 12, "d_inner": 3072, "vocab_size": 50264,
              "ssm_cfg": {"d_state": 64}, "attn_layer_idx": [6], "attn_cfg": {"num_heads": 12}}
    return decoder_models.barely_trained(program, str(ROOT / "deploy/models"), folder + "/training", config)


def decode_rate(program, weights, streams, file):
    subprocess.run([program, "bench", "generate", "--preset", "h3-125m", "--weights", weights, "--repeats", "1",
                    "--prompt", str(TOKENS // 2), "--batch", str(streams), "--json", file], check=True,
                   stdout=subprocess.DEVNULL)
    with open(file) as text:
        return next(r["value"] for r in json.load(text)["results"] if r["name"] == "decode")


def stream_rate(program, server, streams, file):
    """Tokens per second while streams that began together decode, and the processors that their client took."""
    address = re.search(r"^grpc listening on (\S+)$", server.said(), re.MULTILINE)[1]
    subprocess.run([program, "bench", "serve", "--grpc", address, "--concurrency", str(streams), "--requests",
                    str(streams), "--prompt", str(PROMPT), "--tokens", str(TOKENS), "--json", file], check=True,
                   stdout=subprocess.DEVNULL)
    with open(file) as text:
        report = json.load(text)
    per_token = next(r["value"] for r in report["results"] if r["name"] == "time_per_output_token_p50")
    return streams / per_token * 1000, report["points"][0]["client_processors"]


def measure(program, model, weights, streams, folder):
    alone = decode_rate(program, weights, streams, folder + "/json")
    server = encoder_server.Server(program, {"h3": model}, folder + "/log", weights)
    try:
        served, client = stream_rate(program, server, streams, folder + "/json")
    finally:
        server.stop()
    rest = os.cpu_count() - client
    return {"bench_generate": round(alone, 1), "streams": round(served, 1), "client_processors": round(client, 3),
            "of_bench": round(served / alone, 3),
            "without_client": round(served / alone * os.cpu_count() / rest, 3)}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--hippodrome", default=str(ROOT / "build/release/bin/hippodrome"))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--weights", default="f32,bf16,int8,int4")
    options.add_argument("--streams", default="32,64")
    options.add_argument("--json")
    given = options.parse_args()
    rounds = {}
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(given.hippodrome, folder)
        for _ in range(given.rounds):
            for weights in given.weights.split(","):
                for streams in map(int, given.streams.split(",")):
                    found = measure(given.hippodrome, model, weights, streams, folder)
                    print(weights, streams, json.dumps(found), flush=True)
                    rounds.setdefault(f"{weights} {streams}", []).append(found)
    medians = {case: {name: statistics.median(found[name] for found in all_rounds) for name in all_rounds[0]}
               for case, all_rounds in rounds.items()}
    report = {"unit": "tokens/s", "medians": medians, "rounds": rounds}
    print(json.dumps(medians, indent=1))
    if given.json:
        with open(given.json, "w") as file:
            file.write(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
