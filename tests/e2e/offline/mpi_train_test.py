"""Trains under mpirun with the real program: on 1, 2 and 4 ranks, sharded or not, with the bits of one
process; killed and resumed on another number of ranks; stopped; and with what cannot work.

  mpi_train_test.py HIPPODROME MPIRUN [--long CONFIG DATA] [--json FILE]

--long: 200 steps of the model CONFIG describes on the tokens of DATA, in f32 and bf16. The exit status is 77 if
there is no MPIRUN.
"""

import argparse
import hashlib
import json
import os
import pathlib
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import mpi

RUN = {
    "model": {"config": {
        "model_type": "h3", "d_model": 32, "n_layer": 2, "d_inner": 64, "vocab_size": 20,
        "pad_vocab_size_multiple": 1, "ssm_cfg": {"d_state": 16}, "attn_layer_idx": [1], "attn_cfg": {"num_heads": 2}}},
    "objective": "induction_head", "data": {"vocabulary": 20, "sequence": 30},
    "batch": 16, "micro_batch": 2, "steps": 30,
    "optimizer": {"rate": 1e-3, "weight_decay": 0.1, "clip": 0.5, "ema": 0.9},
    "dropout": {"embedding": 0.1, "attention": 0.1}, "seed": 3, "evaluate_every": 10, "checkpoint_every": 3,
    "log_every": 1,
}


class Runs:
    """Runs of one description, each in a folder of its own."""

    def __init__(self, folder, **changes):
        self.folder = folder
        self.run = RUN | changes

    def path(self, name, *parts):
        return os.path.join(self.folder, name, *parts)

    def write(self, name, **changes):
        path = self.path(name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.run | changes | {"output": self.path(name)}, file)
        return path

    def command(self, name, ranks, *options):
        program = [ARGUMENTS.hippodrome, "train", "--config", self.path(name + ".json"), *options]
        return mpi.command(ARGUMENTS.mpirun, ranks, *program) if ranks else program

    def train(self, name, ranks, *options):
        """ranks: 0 for one process without mpirun."""
        return subprocess.run(self.command(name, ranks, *options), env=mpi.ENVIRONMENT, capture_output=True, text=True,
                              check=False)

    def start(self, name, ranks, *options):
        return subprocess.Popen(self.command(name, ranks, *options), env=mpi.ENVIRONMENT, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def digests(self, name):
        """Of the model, and of all that the optimizer keeps after the last step."""
        files = [self.path(name, "model", "model.safetensors"),
                 self.path(name, "checkpoints", f"step-{self.run['steps']}", "state.safetensors")]
        digests = []
        for file in files:
            with open(file, "rb") as opened:
                digests.append(hashlib.file_digest(opened, "sha256").hexdigest())
        return digests

    def losses(self, name):
        with open(self.path(name, "metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return {(line["step"], key): line[key] for line in lines for key in ("loss", "valid_loss", "gradient_norm")
                if key in line}

    def wait_for_step(self, name, step, process):
        while not os.path.exists(self.path(name, "metrics.jsonl")) or not self.losses(name) or \
                max(self.losses(name))[0] < step:
            if process.poll() is not None:
                raise RuntimeError(process.stdout.read())
            time.sleep(0.02)


def ranks_of(mpirun_pid):
    """The processes that mpirun started, in the order of their ranks."""
    with open(f"/proc/{mpirun_pid}/task/{mpirun_pid}/children", encoding="ascii") as file:
        pids = [int(pid) for pid in file.read().split()]
    ranks = {}
    for pid in pids:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(part.split(b"=", 1) for part in file.read().split(b"\0") if b"=" in part)
        if b"OMPI_COMM_WORLD_RANK" in variables:  # not there between fork and exec
            ranks[int(variables[b"OMPI_COMM_WORLD_RANK"])] = pid
    return [ranks[rank] for rank in sorted(ranks)]


class MpiTrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.runs = Runs(work.name)
        cls.runs.write("whole")
        done = cls.runs.train("whole", 0)
        assert done.returncode == 0, done.stderr

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1]

    def assert_as_whole(self, name):
        self.assertEqual(self.runs.digests(name), self.runs.digests("whole"))

    def test_any_number_of_ranks_gives_the_bits_of_one_process(self):
        for ranks, sharded in [(1, True), (2, False), (4, True)]:
            with self.subTest(ranks=ranks, sharded=sharded):
                name = f"{self.name}_{ranks}"
                self.runs.write(name, shard_optimizer=sharded)
                done = self.runs.train(name, ranks)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"the model is in {self.runs.path(name)}/model", done.stderr)
                self.assert_as_whole(name)
                self.assertEqual(self.runs.losses(name), self.runs.losses("whole"))

    def test_a_rank_that_dies_ends_the_job_and_others_go_on_from_the_checkpoint(self):
        self.runs.write(self.name, shard_optimizer=True)
        for ranks, dies in [(3, 1), (2, 0), (1, 0)]:
            process = self.runs.start(self.name, ranks, "--resume")
            first = max(self.runs.losses(self.name))[0] if os.path.exists(self.runs.path(self.name, "metrics.jsonl")) \
                else 0
            self.runs.wait_for_step(self.name, first + 5, process)
            os.kill(ranks_of(process.pid)[dies], signal.SIGKILL)
            said, _ = process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
            self.assertRegex(said, rf"process rank {dies} with PID \d+ on node \S+ exited on signal 9")
            if ranks > 1:
                self.assertRegex(said, rf"waits for rank {dies} \(\S+\); if that has died, the last checkpoint is of "
                                       r"step \d+ \(--resume\)")
        done = self.runs.train(self.name, 2, "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_as_whole(self.name)

    def test_a_job_that_is_stopped_writes_a_checkpoint(self):
        self.runs.write(self.name)
        process = self.runs.start(self.name, 2)
        self.runs.wait_for_step(self.name, 4, process)
        for rank in ranks_of(process.pid):
            os.kill(rank, signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        self.assertRegex(said, r"stopped after step \d+; to go on: ")
        done = self.runs.train(self.name, 0, "--resume")  # on one process
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_as_whole(self.name)

    def test_more_ranks_than_micro_batches_are_an_error(self):
        self.runs.write(self.name, micro_batch=8)
        done = self.runs.train(self.name, 3)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("expected one at least for each rank"), 1, done.stderr)
        self.assertIn("3 ranks, but 2 micro-batches in a batch", done.stderr)

    def test_a_run_file_that_cannot_be_read_is_told_once(self):
        done = self.runs.train(self.name, 2)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count(self.name + ".json"), 1, done.stderr)

    def test_ranks_with_other_run_files_are_named(self):
        self.runs.write(self.name + "_a")
        self.runs.write(self.name + "_b", seed=4)
        command = self.runs.command(self.name + "_a", 1) + [":"] + self.runs.command(self.name + "_b", 1)[1:]
        done = subprocess.run(command, env=mpi.ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"rank 1 \(\S+\) has another run file than rank 0")

    def test_without_the_module_a_rank_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(ARGUMENTS.hippodrome, folder)
            self.runs.write(self.name)
            done = subprocess.run(mpi.command(ARGUMENTS.mpirun, 2, program, "train", "--config",
                                              self.runs.path(self.name + ".json")),
                                  env=mpi.ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no MPI module: libhippodrome_mpi.so", done.stderr)


def long(config, data):
    """200 steps with 8 micro-batches on 1, 2 and 4 ranks; 10 times killed, and resumed on 1, 2 and 3."""
    report = {"machine": platform.processor() or platform.machine(), "command": " ".join(sys.argv), "results": []}
    with open(config, encoding="utf-8") as file:
        model = json.load(file)
    for weights in ("f32", "bf16"):
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(folder, model={"config": model}, objective="causal_lm", length=64, batch=16, micro_batch=2,
                        steps=200, weights=weights, log_every=10, checkpoint_every=10, evaluate_every=0,
                        data={"train": os.path.abspath(data)})
            digests, begin = {}, time.monotonic()
            for ranks, sharded in [(0, False), (1, False), (2, False), (2, True), (4, False), (4, True)]:
                name = f"{ranks}-{sharded}"
                runs.write(name, shard_optimizer=sharded)
                done = runs.train(name, ranks)
                assert done.returncode == 0, done.stderr
                digests[name] = runs.digests(name)
                print(weights, ranks, "ranks, sharded" if sharded else "ranks", digests[name], flush=True)
            usual = (time.monotonic() - begin) / len(digests)
            kills = []
            runs.write("killed", shard_optimizer=True)
            chance = random.Random(1)
            while len(kills) < 10:
                ranks = 1 + len(kills) % 3
                process = runs.start("killed", ranks, "--resume")
                while process.poll() is None and len(ranks_of(process.pid)) < ranks:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0.04, 0.12) * usual)
                assert process.poll() is None, "it has reached the end"
                os.kill(chance.choice(ranks_of(process.pid)), signal.SIGKILL)
                process.communicate()
                kills.append(ranks)
            done = runs.train("killed", 3, "--resume")
            assert done.returncode == 0, done.stderr
            digests["killed"] = runs.digests("killed")
            print(weights, "killed on", kills, "ranks", digests["killed"], flush=True)
            report["results"].append({"weights": weights, "steps": 200, "micro_batches": 8, "killed_on_ranks": kills,
                                      "equal": len({str(one) for one in digests.values()}) == 1, "digests": digests})
    if ARGUMENTS.json:
        with open(ARGUMENTS.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    assert all(result["equal"] for result in report["results"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("mpirun")
    parser.add_argument("--long", nargs=2, metavar=("CONFIG", "DATA"))
    parser.add_argument("--json")
    ARGUMENTS = parser.parse_args()
    if not shutil.which(ARGUMENTS.mpirun):
        print(f"there is no {ARGUMENTS.mpirun}; tools/deps --checks installs it")
        sys.exit(77)
    if ARGUMENTS.long:
        long(*ARGUMENTS.long)
    else:
        unittest.main(argv=sys.argv[:1])
