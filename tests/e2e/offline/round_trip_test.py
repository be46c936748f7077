"""What train saves, export writes in the published layouts and convert makes again: the same bytes.

  round_trip_test.py HIPPODROME
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HIPPODROME = sys.argv[1]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "tea", "cup", "of"]
LENGTH = 8
DECODER = {
    "model_type": "h3", "d_model": 16, "n_layer": 2, "d_inner": 32, "vocab_size": 10,
    "pad_vocab_size_multiple": 8, "ssm_cfg": {"d_state": 8, "head_dim": 2, "n_ssm": 2},
    "attn_layer_idx": [1], "attn_cfg": {"num_heads": 2, "rotary_emb_dim": 4},
    "max_position_embeddings": 16,
}
ENCODER = {
    "model_type": "BiGS", "vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 2,
    "intermediate_size": 32, "num_ssm": 4, "max_position_embeddings": LENGTH,
}
COMPARED = ("config.json", "model.safetensors")


class RoundTripTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.write("vocab.txt", "".join(word + "\n" for word in WORDS))

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_program(self, *arguments):
        done = subprocess.run([HIPPODROME, *arguments], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def train(self, config, objective, data, **changes):
        """The directory of a model that was trained for two steps."""
        run = {"output": self.path("run"), "model": {"config": config}, "objective": objective,
               "data": data, "batch": 2, "steps": 2, "optimizer": {"rate": 1e-3, "ema": 0.9},
               "seed": 1, "threads": 1, "evaluate_every": 0}
        self.write("run.json", json.dumps(run | changes))
        self.run_program("train", "--config", self.path("run.json"))
        return self.path("run/model")

    def train_encoder(self, objective, data, **config):
        return self.train(ENCODER | config, objective, data, length=LENGTH, tokenizer=self.work)

    def train_classifier(self, **config):
        self.write("texts.tsv", "good\tcup of tea\nbad\ttea of cup\n" * 4)
        return self.train_encoder("classification",
                                  {"train": self.path("texts.tsv"),
                                   "columns": {"label": 0, "text": 1}, "labels": ["bad", "good"]},
                                  **config)

    def expect_same(self, model, again):
        for name in COMPARED:
            with self.subTest(name), open(os.path.join(model, name), "rb") as a, \
                    open(os.path.join(again, name), "rb") as b:
                self.assertEqual(a.read(), b.read())

    def expect_round_trips(self, model):
        for layout in ("huggingface", "flax"):
            with self.subTest(layout):
                self.run_program("export", "--model", model, "--format", layout,
                                 "--out", self.path(layout))
                self.run_program("convert", self.path(layout), "--out", self.path("of " + layout))
                self.expect_same(model, self.path("of " + layout))

    def test_h3(self):
        model = self.train(DECODER, "induction_head", {"vocabulary": 10, "sequence": 8})
        self.run_program("export", "--model", model, "--format", "torch",
                         "--out", self.path("model.pt"))
        self.run_program("convert", self.path("model.pt"),
                         "--config", os.path.join(model, "config.json"),
                         "--out", self.path("again"))
        self.expect_same(model, self.path("again"))

    def test_a_classifier(self):
        self.expect_round_trips(self.train_classifier())

    def test_a_classifier_with_several_heads_and_no_position_table(self):
        self.expect_round_trips(self.train_classifier(
            num_ssm_heads=2, position_embedding_type="none", layer_gelu="tanh"))

    def train_masked_lm(self, **config):
        self.write("text.txt", "good tea of cup\n<|endoftext|>\n" * 20)
        tokens = self.path("text.safetensors")
        self.run_program("tokenizer", "encode", "--tokenizer", self.work,
                         "--input", self.path("text.txt"), "--output", tokens)
        return self.train_encoder("masked_lm", {"train": tokens}, **config)

    def test_a_masked_lm(self):
        self.expect_round_trips(self.train_masked_lm())

    def test_a_masked_lm_with_a_decoder_of_its_own(self):
        self.expect_round_trips(self.train_masked_lm(tie_word_embeddings=False))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
