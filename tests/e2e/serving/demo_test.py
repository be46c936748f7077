"""Serves the models of deploy/models with the real program, as tools/quickstart does, and asks both.

  demo_test.py HIPPODROME MODELS_DIR
"""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.encoder_server import OPENAI, Server

HIPPODROME, MODELS = sys.argv[1], sys.argv[2]
# Clear cases, which a reader would not doubt.
GREAT = "I absolutely love this tea. It is delicious, and the best I have ever had!"
OTHER = "Terrible. It tasted stale and awful, and I threw it away. Do not waste your money."


class DemoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        models = {name: os.path.join(MODELS, name) for name in ("h3-demo", "bigs-demo")}
        cls.server = Server(HIPPODROME, models, os.path.join(cls.work.name, "log"))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.work.cleanup()

    def call(self, path, body):
        return self.server.call(path, body, OPENAI)

    def test_both_are_listed(self):
        names = {model["id"] for model in self.call("/v1/models", None)["data"]}
        self.assertEqual(names, {"h3-demo", "bigs-demo"})

    def test_the_encoder_tells_reviews_apart(self):
        answers = self.call("/predict", {"inputs": [[GREAT], [OTHER]]})
        best = [max(answer, key=lambda one: one["score"])["label"] for answer in answers]
        self.assertEqual(best, ["great", "other"])

    def test_the_decoder_writes_words(self):
        answer = self.call("/v1/completions", {"model": "h3-demo", "max_tokens": 40, "seed": 1,
                                               "prompt": "It was a dark night, and"})
        words = answer["choices"][0]["text"].split()
        self.assertGreater(len(words), 10)
        self.assertLess(max(map(len, words)), 30)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
