"""The models of deploy/models in a server of its own, and as they are evaluated in process."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from testing import processes  # noqa: E402

MODEL = ROOT / "deploy/models/h3-demo"
ENCODER = ROOT / "deploy/models/bigs-demo"
failures = 0


def check(what, good, shown=""):
    """Prints the outcome, and counts it."""
    global failures
    failures += not good
    print(f"{'PASS  ' if good else 'FAILED'} {what} {shown}".rstrip(), flush=True)


def vocabulary():
    """How many tokens the decoder has, and which ends a text."""
    config = json.loads((MODEL / "config.json").read_text())
    return config["vocab_size"], config["eos_token_id"]


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path, objects):
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    return path


class Server(processes.Process):
    def __init__(self, hippodrome, folder):
        """`folder`: where its log goes."""
        super().__init__([hippodrome, "serve", "--model", MODEL, "--model", ENCODER, "--device", "cpu", "--http",
                          "127.0.0.1:0", "--grpc", "127.0.0.1:0"], folder / "serve.log")
        self.http, self.grpc = self.listens("http"), self.listens("grpc")
        self.completions = f"http://{self.http}/v1/completions"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def eval_choices(hippodrome, folder, questions):
    """What `hippodrome eval choices` says of the questions in a file: its report, and the scores of each."""
    scores = folder / "scores.jsonl"
    report = subprocess.run([hippodrome, "eval", "choices", "--model", MODEL, "--data", questions,
                             "--scores", scores, "--device", "cpu"],
                            check=True, capture_output=True).stdout
    return json.loads(report), read_lines(scores)
