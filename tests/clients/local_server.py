"""The models of deploy/models in a server of its own, and as they are evaluated in process."""

import json
import pathlib
import re
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "deploy/models/h3-demo"
ENCODER = ROOT / "deploy/models/bigs-demo"
failures = 0


def check(what, good, shown=""):
    """Prints the outcome, and counts it."""
    global failures
    failures += not good
    print(f"{'PASS  ' if good else 'FAILED'} {what} {shown}".rstrip(), flush=True)


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path, objects):
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    return path


class Server:
    def __init__(self, hippodrome, folder):
        """`folder`: where its log goes."""
        self.log = folder / "serve.log"
        self.process = subprocess.Popen(
            [hippodrome, "serve", "--model", MODEL, "--model", ENCODER, "--device", "cpu", "--http",
             "127.0.0.1:0", "--grpc", "127.0.0.1:0"], stdout=self.log.open("w"), stderr=subprocess.STDOUT)
        self.http, self.grpc = self.address("http"), self.address("grpc")
        self.completions = f"http://{self.http}/v1/completions"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def address(self, name):
        for _ in range(600):
            found = re.search(rf"^{name} listening on (.*)$", self.log.read_text(), re.MULTILINE)
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError("the server does not listen: " + self.log.read_text())


def eval_choices(hippodrome, folder, questions):
    """What `hippodrome eval choices` says of the questions in a file: its report, and the scores of each."""
    scores = folder / "scores.jsonl"
    report = subprocess.run([hippodrome, "eval", "choices", "--model", MODEL, "--data", questions,
                             "--scores", scores, "--device", "cpu"],
                            check=True, capture_output=True).stdout
    return json.loads(report), read_lines(scores)
