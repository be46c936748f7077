#!/usr/bin/env python3
"""Prefill and decode of two builds, in turns.

  generate_pairs.py HIPPODROME_BEFORE HIPPODROME_NOW [--pairs N] [--batches N,N...] [--json FILE]

Each pair runs `bench generate --preset h3-125m` of both, now one first and now the other; a figure is the median of
the pairs' ratios, now against before.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile


def measure(program, batches, file):
    subprocess.run([program, "bench", "generate", "--preset", "h3-125m", "--repeats", "5", "--batch", batches,
                    "--json", file], check=True, stdout=subprocess.DEVNULL)
    with open(file) as text:
        found = json.load(text)["results"]
    return {f"{r['name']} batch {r['batch']}": r["value"] for r in found if r["name"] in ("prefill", "decode")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--json")
    given = parser.parse_args()
    seen = {}
    with tempfile.NamedTemporaryFile() as file:
        for pair in range(given.pairs):
            order = ("before", "now") if pair % 2 == 0 else ("now", "before")
            for which in order:
                for name, value in measure(getattr(given, which), given.batches, file.name).items():
                    seen.setdefault(name, {"before": [], "now": []})[which].append(round(value, 1))
    for figures in seen.values():
        figures["median_ratio"] = round(
            statistics.median(now / before for before, now in zip(figures["before"], figures["now"])), 3)
    report = {"unit": "tokens/s", **seen}
    print(json.dumps(report, indent=1))
    if given.json:
        with open(given.json, "w") as file:
            file.write(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
