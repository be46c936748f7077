"""Trains with the real program: to its end, killed at random moments and resumed, and interrupted.

  train_test.py HIPPODROME
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HIPPODROME = sys.argv[1]
KILLS = 20
DECODER = {
    "model_type": "h3", "d_model": 32, "n_layer": 2, "d_inner": 64, "vocab_size": 20,
    "pad_vocab_size_multiple": 1, "ssm_cfg": {"d_state": 16}, "attn_layer_idx": [1],
    "attn_cfg": {"num_heads": 2},
}
RUN = {
    "model": {"config": DECODER}, "objective": "induction_head",
    "data": {"vocabulary": 20, "sequence": 30}, "batch": 8, "micro_batch": 4,
    "steps": 150,
    "optimizer": {"rate": 1e-3, "weight_decay": 0.1, "clip": 1.0, "ema": 0.9},
    "schedule": {"kind": "cosine", "warmup": 10}, "dropout": {"embedding": 0.1, "head": 0},
    "weights": "f32", "seed": 3, "threads": 2, "checkpoint_every": 3, "evaluate_every": 50,
    "log_every": 5,
}


def contents(directory):
    """The bytes of a saved model, by file."""
    files = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as file:
            files[name] = file.read()
    return files


class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Trains once without being disturbed, into "whole"."""
        cls.work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.work.cleanup)
        start = time.monotonic()
        done = cls.train(cls.write_run("whole", "whole"))
        cls.seconds = time.monotonic() - start
        assert done.returncode == 0, done.stderr

    @classmethod
    def write_run(cls, name, output, **changes):
        path = os.path.join(cls.work.name, name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(RUN | changes | {"output": output}, file)
        return path

    @staticmethod
    def command(run, *options):
        return [HIPPODROME, "train", "--config", run, *options]

    @classmethod
    def train(cls, run, *options):
        return subprocess.run(cls.command(run, *options), capture_output=True, text=True,
                              check=False)

    def model(self, name):
        files = contents(os.path.join(self.work.name, name, "model"))
        files.pop("training.json", None)  # names the output
        return files

    def metrics(self, name):
        with open(os.path.join(self.work.name, name, "metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        # The loss is the mean of the steps since the last line, or since the run was resumed.
        varying = ("seconds", "tokens_per_second", "fraction_of_limit", "loss")
        return [{k: v for k, v in line.items() if k not in varying} for line in lines]

    def test_a_killed_run_ends_with_the_same_bits(self):
        run = self.write_run("killed", "killed")
        chance = random.Random(5)
        killed = 0
        while killed < KILLS:
            process = subprocess.Popen(self.command(run, "--resume"), stderr=subprocess.DEVNULL)
            try:
                process.wait(chance.uniform(0, self.seconds / 2))
                break  # it reached the end
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
        self.assertGreater(killed, 0)
        done = self.train(run, "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.model("killed"), self.model("whole"))
        self.assertEqual(self.metrics("killed"), self.metrics("whole"))

    def test_an_interrupted_run_writes_a_checkpoint_and_says_how_to_go_on(self):
        run = self.write_run("stopped", "stopped", checkpoint_every=0)
        process = subprocess.Popen(self.command(run), stderr=subprocess.PIPE, text=True)
        while not os.path.exists(os.path.join(self.work.name, "stopped", "metrics.jsonl")):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        if "--resume" in errors:  # else it was faster than the signal
            self.assertEqual(self.train(run, "--resume").returncode, 0)
        self.assertEqual(self.model("stopped"), self.model("whole"))

    def test_the_result_is_a_model(self):
        model = os.path.join(self.work.name, "whole", "model")
        done = subprocess.run([HIPPODROME, "generate", "--model", model, "--prompt-ids", "1,2,19",
                               "--max-tokens", "4", "--json"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["token_ids"]), 4)
        self.assertTrue(os.path.exists(os.path.join(self.work.name, "whole", "loss.svg")))

    def test_an_output_with_checkpoints_is_not_overwritten(self):
        again = self.train(self.write_run("again", "whole"))
        self.assertEqual(again.returncode, 1)
        self.assertIn("--resume", again.stderr)

    def test_checkpoints_of_another_run_are_refused(self):
        done = self.train(self.write_run("other", "whole", seed=4), "--resume")
        self.assertEqual(done.returncode, 1)
        self.assertIn("another run file", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
