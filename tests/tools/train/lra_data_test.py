"""Tests tools/train/lra_data.

  lra_data_test.py
"""

import collections
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools" / "train"
sys.path.insert(0, str(TOOLS))

import listops  # noqa: E402

LENGTH = 100


class Reading:
    """Reads a text of ListOps by recursive descent, and notes what is in it."""

    def __init__(self, text):
        self.tokens = text.split(" ")
        self.depth = 0
        self.arguments = []
        self.value = self.read(1)
        if self.tokens:
            raise ValueError(f"{self.tokens} behind the end")

    def read(self, depth):
        self.depth = max(self.depth, depth)
        token = self.tokens.pop(0)
        if token.isdigit() and len(token) == 1:
            return int(token)
        values = []
        while self.tokens[0] != "]":
            values.append(self.read(depth + 1))
        self.tokens.pop(0)
        self.arguments.append(len(values))
        return self.apply(token, sorted(values))

    @staticmethod
    def apply(operator, ordered):
        middle = len(ordered) // 2
        odd = len(ordered) % 2
        return {
            "[MIN": ordered[0],
            "[MAX": ordered[-1],
            "[MED": ordered[middle] if odd else int((ordered[middle - 1] + ordered[middle]) / 2),
            "[SM": sum(ordered) % 10,
        }[operator]


def run(*arguments):
    return subprocess.run([TOOLS / "lra_data", *arguments], capture_output=True, text=True,
                          check=False)


class ListOpsTest(unittest.TestCase):
    def test_values_as_published(self):
        for text, value in (("7", 7), ("[MAX 4 3 [MIN 2 3 ] 1 0 ]", 4), ("[MED 3 0 9 ]", 3),
                            ("[MED 4 1 ]", 2), ("[SM 9 9 9 ]", 7),
                            ("[MED [SM 5 5 ] [MAX 8 [MIN 9 6 ] ] 1 2 ]", 1)):
            with self.subTest(text):
                self.assertEqual(listops.evaluate(text.split()), value)
                self.assertEqual(Reading(text).value, value)

    def test_chances_as_published(self):
        chance = random.Random(1)
        roots, arguments, digits = collections.Counter(), collections.Counter(), 0
        for _ in range(8000):
            tokens = list(listops.draw(chance, listops.DEEPEST - 1))  # of digits alone
            if len(tokens) == 1:
                digits += 1
            else:
                roots[tokens[0]] += 1
                arguments[len(tokens) - 2] += 1
        # Five standard deviations: 8,000 with a chance of 3/4, and 2,000 among 4 and among 9.
        self.assertAlmostEqual(digits, 6000, delta=5 * 39)
        self.assertEqual(set(roots), {"[MIN", "[MAX", "[MED", "[SM"})
        for count in roots.values():
            self.assertAlmostEqual(count, 500, delta=5 * 20)
        self.assertEqual(set(arguments), set(range(2, 11)))
        for count in arguments.values():
            self.assertAlmostEqual(count, 222, delta=5 * 15)

    def test_files(self):
        with tempfile.TemporaryDirectory() as work:
            out = pathlib.Path(work)
            done = run("listops", "--out", out, "--length", str(LENGTH), "--examples", "300")
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = []
            for name, count in (("train", 300), ("valid", 2000), ("test", 2000)):
                lines = (out / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
                self.assertEqual(len(lines), count)
                rows += [line.split("\t") for line in lines]
            vocabulary = (out / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len({text for _, text in rows}), len(rows))
        depth = 0
        for label, text in rows:
            reading = Reading(text)
            self.assertEqual(int(label), reading.value)
            self.assertTrue(LENGTH // 4 < len(text.split(" ")) < LENGTH)
            self.assertTrue(all(2 <= count <= 10 for count in reading.arguments))
            depth = max(depth, reading.depth)
            # As the tokenizer divides it.
            words = text.lower().replace("[", "[ ").split(" ")
            self.assertLessEqual(set(words), set(vocabulary))
            self.assertLess(len(words), LENGTH * 4 / 3)
        self.assertEqual(depth, 10)

    def test_the_published_lengths(self):
        source = listops.examples(listops.LENGTH, 0)
        lengths = [len(next(source)[1].split(" ")) for _ in range(50)]
        self.assertTrue(all(500 < length < 2000 for length in lengths))
        self.assertGreater(max(lengths), 1500)

    def test_a_seed_says_all(self):
        def some(seed):
            source = listops.examples(LENGTH, seed)
            return [next(source) for _ in range(20)]
        self.assertEqual(some(1), some(1))
        self.assertNotEqual(some(1), some(2))

    def test_bad_numbers(self):
        for option, value, error in (("--length", "19", "19, expected at least 20"),
                                     ("--examples", "0", "0, expected at least 1"),
                                     ("--seed", "x", "invalid int value: 'x'")):
            done = run("listops", "--out", "unused", option, value)
            self.assertEqual(done.returncode, 2)
            self.assertIn(error, done.stderr)


class BytesTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)
        self.out = self.work / "out"

    def run_on(self, text, out=None):
        path = self.work / "texts.tsv"
        path.write_bytes(text)
        return run("bytes", "--out", out or self.out, path)

    def test_each_byte_is_a_word(self):
        done = self.run_on("good\tA  é\tx\r\nbad\t\"\n".encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.out / "texts.tsv").read_text(encoding="utf-8"),
                         "good\t41 20 20 c3 a9 09 78\nbad\t22\n")
        vocabulary = (self.out / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(vocabulary), 5 + 256)
        self.assertEqual(vocabulary[5:], [bytes([byte]).hex() for byte in range(256)])

    def test_a_line_without_a_label(self):
        done = self.run_on(b"good\tx\n\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("texts.tsv: line 2 has no tab, expected a label and a text", done.stderr)

    def test_nothing_is_written_over(self):
        done = self.run_on(b"good\tx\n", self.work)
        self.assertEqual(done.returncode, 1)
        self.assertIn("would be written over", done.stderr)
        self.assertEqual((self.work / "texts.tsv").read_bytes(), b"good\tx\n")

    def test_a_missing_file(self):
        done = run("bytes", "--out", self.out, self.work / "none.tsv")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^lra_data: .*none.tsv'\n$")


if __name__ == "__main__":
    unittest.main()
