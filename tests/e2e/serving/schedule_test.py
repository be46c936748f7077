"""The same request gives the same tokens and the same bits of log probabilities, whoever else is there,
whenever they come, however long clients or the machine stall, and with one thread or two.

  schedule_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

The short form, a test, has few prompts; --long has 32 prompts with 256 tokens each.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.grpc_messages import generate, generate_message
from testing import http_peers
from testing.http_peers import Server

SOURCE = ("It was a dark night, and the old man who had come from the sea sat down beside the fire and "
          "told the children of the ships, the storms and the islands that he had seen, until the "
          "youngest of them asked him whether he had ever been afraid of anything at all. ") * 6
SERVERS = {"one thread": ["--threads", "1"],
           "two threads, prompts in small pieces": ["--threads", "2", "--max-stall-ms", "1"],
           "two threads, five slots": ["--threads", "2", "--max-sequences", "5"]}


def messages(count, tokens):
    draw = random.Random(4)
    starts = [(draw.randrange(300), draw.randrange(10, 1200)) for _ in range(count)]
    return [generate_message(SOURCE[start:start + size], tokens, 2) for start, size in starts]


class Stalls(threading.Thread):
    """Stops the whole server for a moment, now and then."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.3):
            self.server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            self.server.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def batch(server, asked, size, draw):
    """The answers to `asked`, `size` of them at a time, each begun after a moment; some clients are slow."""
    delays = [draw.random() * 0.02 for _ in asked]
    pauses = [draw.choice([0, 0, 0, 0.005]) for _ in asked]

    def one(i):
        time.sleep(delays[i])
        return generate(server, asked[i], pause=lambda: time.sleep(pauses[i]) if pauses[i] else None)

    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(len(asked))))


def main():
    arguments = http_peers.arguments()
    asked = messages(32, 256) if arguments.long else messages(6, 16)
    sizes = [1, 2, 3, 5, 8, 16, 33, 64] if arguments.long else [2, 12]
    draw = random.Random(5)
    alone, compared, differ = None, collections.Counter(), 0
    for name, options in SERVERS.items():
        with Server(arguments.hippodrome, arguments.models, *options) as server, Stalls(server):
            for size in sizes:
                # As many as run at once, and some more.
                many = asked * -(-size // len(asked))
                if alone is None:
                    alone = [generate(server, message) for message in asked]
                    assert len(set(alone)) == len(asked)
                answers = batch(server, many, size, draw)
                for i, answer in enumerate(answers):
                    differ += answer != alone[i % len(asked)]
                compared[name] += len(answers)
            assert server.stop() == 0, server.said()
    report = {"prompts": len(asked), "tokens": 256 if arguments.long else 16, "at_once": sizes,
              "answers_compared_with_those_alone": dict(compared), "differ": differ,
              "processors": os.cpu_count()}
    print(json.dumps(report, indent=1))
    assert differ == 0
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
