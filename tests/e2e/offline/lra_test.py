"""The tasks of tools/train/lra_data, read and trained by the recipes of tools/train/recipes/lra.

  lra_test.py HIPPODROME
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

HIPPODROME = pathlib.Path(sys.argv[1]).resolve()
TRAIN = pathlib.Path(__file__).resolve().parents[3] / "tools" / "train"
FIRST_WORD = 5  # behind the special tokens
# Capitals, spaces, punctuation, an accent, an ideograph, and a word that WordPiece takes for unknown.
TEXT = "Très  BAD... \u8336 [MASK] " + "x" * 200


def token_ids(path):
    """Of a file of `tokenizer encode`."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    tensor = json.loads(data[8:8 + size])["tokens"]
    begin, end = (8 + size + offset for offset in tensor["data_offsets"])
    return [token for token, in struct.iter_unpack("<i", data[begin:end])]


class LraTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.work = pathlib.Path(work.name)
        mails = cls.work / "spam_train.tsv"
        mails.write_text(f"ham\t{TEXT}\nspam\t{TEXT}\n" * 4, encoding="utf-8")
        cls.call(TRAIN / "lra_data", "listops", "--out", cls.work / "listops", "--length", "100",
                 "--examples", "8")
        cls.call(TRAIN / "lra_data", "bytes", "--out", cls.work / "bytes", mails)

    @staticmethod
    def call(*command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def tokens(self, task, text):
        path = self.work / "text.txt"
        path.write_text(text, encoding="utf-8")
        output = self.work / "text.safetensors"
        self.call(HIPPODROME, "tokenizer", "encode", "--tokenizer", self.work / task,
                  "--input", path, "--output", output)
        return token_ids(output)

    def test_each_byte_is_a_token(self):
        table = (self.work / "bytes" / "spam_train.tsv").read_text(encoding="utf-8")
        encoded = table.partition("\n")[0].partition("\t")[2]
        self.assertEqual(self.tokens("bytes", encoded),
                         [FIRST_WORD + byte for byte in TEXT.encode()])

    def test_brackets_operators_and_digits_are_tokens(self):
        words = (self.work / "listops" / "vocab.txt").read_text(encoding="utf-8").split()
        tokens = self.tokens("listops", "[MAX 4 [SM 2 0 ] ]")
        self.assertEqual([words[token] for token in tokens],
                         ["[", "max", "4", "[", "sm", "2", "0", "]", "]"])

    def test_the_recipes_train(self):
        recipes = sorted((TRAIN / "recipes" / "lra").glob("*.json"))
        self.assertEqual(len(recipes), 6)
        for path in recipes:
            with self.subTest(path.name):
                recipe = json.loads(path.read_text(encoding="utf-8"))
                data = self.work / pathlib.PurePath(recipe["tokenizer"]).name
                recipe |= {"output": str(self.work / path.stem), "tokenizer": str(data),
                           "batch": 2, "steps": 2}
                recipe["schedule"]["warmup"] = 0
                recipe["data"]["train"] = str(data / pathlib.PurePath(recipe["data"]["train"]).name)
                del recipe["data"]["valid"]
                run = self.work / path.name
                run.write_text(json.dumps(recipe), encoding="utf-8")
                self.call(HIPPODROME, "train", "--config", run)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
