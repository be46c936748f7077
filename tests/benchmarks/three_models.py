#!/usr/bin/env python3
"""Three busy models in one server against the same work one model after the other.

  tests/benchmarks/three_models.py [--hippodrome FILE] [--rounds N] [--seconds N] [--json FILE]

Serves two decoders and an encoder, finds how many requests keep each busy for --seconds alone, and
then, in each round, gives that work to each alone, and to all together after each. `throughput` is
the sum of the median times alone divided by the median time together: 1 where sharing the processor
costs nothing. Then the server idles for ten seconds, and `idle` is the fraction of one core that it
took. Clients run on the same cores. The texts that come back must not depend on who else was served.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from testing import encoder_server  # noqa: E402

PROMPT = "It was the best of times, and the old man said to"
REVIEW = "the coffee arrived early and tastes better than anything that i have bought before . "


def complete(server, model, seed):
    body = {"model": model, "prompt": PROMPT, "max_tokens": 160, "seed": seed, "ignore_eos": True}
    return server.call("/v1/completions", body, encoder_server.OPENAI)["choices"][0]["text"]


def classify(server, model, seed):
    texts = [[REVIEW * (1 + (seed + i) % 6)] for i in range(16)]
    return server.call("/predict", {"model": model, "inputs": texts}, encoder_server.HUB)


class Work:
    """Requests of one model, `clients` at a time."""

    def __init__(self, server, model, ask, clients):
        self.server, self.model, self.ask, self.clients = server, model, ask, clients
        self.requests = clients

    def run(self):
        """The answers to all requests."""
        with concurrent.futures.ThreadPoolExecutor(self.clients) as pool:
            return list(pool.map(lambda seed: self.ask(self.server, self.model, seed),
                                 range(self.requests)))

    def last(self, seconds):
        """Chooses how many requests take about so long."""
        self.run()
        while (took := timed(self.run)[0]) < seconds / 4:
            self.requests *= 2
        self.requests = max(self.clients, round(self.requests * seconds / took))


def timed(call):
    begin = time.monotonic()
    result = call()
    return time.monotonic() - begin, result


def together(works):
    with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
        return [answers.result() for answers in [pool.submit(work.run) for work in works]]


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_fraction(pid, seconds=10):
    time.sleep(1)
    before = processor_seconds(pid)
    time.sleep(seconds)
    return (processor_seconds(pid) - before) / seconds


def measure_round(works):
    """Seconds of each alone, and of all together after each."""
    alone, mixed = [], []
    for i, work in enumerate(works):
        seconds, answers = timed(work.run)
        alone.append(seconds)
        seconds, all_answers = timed(lambda: together(works))
        mixed.append(seconds)
        if all_answers[i] != answers:
            raise RuntimeError("an answer depends on what else was served")
    return alone, mixed


def measure(server, rounds, seconds):
    works = [Work(server, "h3-a", complete, 16), Work(server, "h3-b", complete, 4),
             Work(server, "bigs", classify, 4)]
    for work in works:
        work.last(seconds)
    results = []
    for _ in range(rounds):
        alone, mixed = measure_round(works)
        results.append({"alone_seconds": [round(s, 3) for s in alone],
                        "together_seconds": [round(s, 3) for s in mixed]})
        print(json.dumps(results[-1]), flush=True)
    alone = sum(statistics.median(times) for times in zip(*(r["alone_seconds"] for r in results)))
    mixed = statistics.median(s for r in results for s in r["together_seconds"])
    return {"requests": {work.model: work.requests for work in works}, "rounds": results,
            "throughput": round(alone / mixed, 4), "idle": idle_fraction(server.process.pid)}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--hippodrome", default=str(ROOT / "build/release/bin/hippodrome"))
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--seconds", type=float, default=1)
    options.add_argument("--json")
    options = options.parse_args()
    demos = ROOT / "deploy/models"
    models = {"h3-a": demos / "h3-demo", "h3-b": demos / "h3-demo", "bigs": demos / "bigs-demo"}
    with tempfile.TemporaryDirectory() as folder:
        server = encoder_server.Server(options.hippodrome, models, folder + "/log", "bf16")
        try:
            result = measure(server, options.rounds, options.seconds)
        finally:
            server.stop()
    print(f"throughput {result['throughput']:.3f} of one after the other, "
          f"idle {100 * result['idle']:.2f} % of a core")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
