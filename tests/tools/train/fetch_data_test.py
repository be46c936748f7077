"""Tests what reads the packages of tools/train/fetch_data, on small inputs made here.

  fetch_data_test.py
"""

import bz2
import io
import lzma
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools" / "train"
sys.path.insert(0, str(TOOLS))

import r_data  # noqa: E402
import rated_texts  # noqa: E402
import sword_text  # noqa: E402
import wordnet_text  # noqa: E402

HEADER = b"X\n" + struct.pack(">3i", 3, 0x40201, 0x30500) + struct.pack(">i", 5) + b"UTF-8"
NIL = struct.pack(">i", 254)
VECTOR, ATTRIBUTES, TAG = struct.Struct(">ii"), 1 << 9, 1 << 10


def chars(text):
    return VECTOR.pack(9, len(text.encode())) + text.encode()


def symbol(name):
    return struct.pack(">i", 1) + chars(name)


def strings(*texts, flags=0):
    return VECTOR.pack(16 | flags, len(texts)) + b"".join(map(chars, texts))


def integers(*numbers, flags=0):
    return VECTOR.pack(13 | flags, len(numbers)) + struct.pack(f">{len(numbers)}i", *numbers)


def tagged(tag, value):
    """An element of a pair list."""
    return struct.pack(">i", 2 | TAG) + tag + value


def named(values):
    """A list with names."""
    return (VECTOR.pack(19 | ATTRIBUTES, len(values)) + b"".join(values.values()) +
            tagged(symbol("names"), strings(*values)) + NIL)


def factor(levels, *codes):
    # R writes a symbol once and refers to it afterwards; here the first one was "names".
    return (integers(*codes, flags=ATTRIBUTES) + tagged(symbol("levels"), strings(*levels)) +
            tagged(symbol("class"), strings("factor")) + NIL)


class RDataTest(unittest.TestCase):
    def write_database(self, directory, compressed, pack, values):
        """The files of a lazy-load database with these serialised variables."""
        stem, data, places = os.path.join(directory, "Rdata"), b"", {}
        for name, value in values.items():
            packed = struct.pack(">i", len(value)) + pack(value)
            places[name] = integers(len(data), len(packed))
            data += packed
        index = named({"variables": named(places), "compressed": integers(compressed)})
        pathlib.Path(stem + ".rdx").write_bytes(zlib.compress(HEADER + index))
        pathlib.Path(stem + ".rdb").write_bytes(data)
        return stem

    def test_reads_each_packing(self):
        values = {"lines": HEADER + strings("one", "zwölf", ""),
                  "numbers": HEADER + integers(3, -4)}
        lzma2 = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
        packings = [
            (1, zlib.compress),
            (2, lambda data: b"2" + bz2.compress(data)),
            (3, lambda data: b"Z" + lzma.compress(data, lzma.FORMAT_RAW, filters=lzma2)),
            (3, lambda data: b"0" + data),
        ]
        for compressed, pack in packings:
            with tempfile.TemporaryDirectory() as directory:
                stem = self.write_database(directory, compressed, pack, values)
                variables = r_data.read_database(stem)
                self.assertEqual(list(variables), ["lines", "numbers"])
                self.assertEqual(variables["lines"](), ["one", "zwölf", ""])
                self.assertEqual(variables["numbers"](), [3, -4])

    def test_reads_a_table(self):
        table = named({"score": factor(["great", "other"], 2, 1), "review": strings("bad", "good")})
        columns = r_data.parse(HEADER + table).named()
        self.assertEqual(columns["score"].labels(), ["other", "great"])
        self.assertEqual(columns["review"], ["bad", "good"])

    def test_resolves_references(self):
        pairs = (tagged(symbol("a"), integers(1)) +
                 tagged(struct.pack(">i", 1 << 8 | 255), integers(2)) + NIL)
        self.assertEqual(r_data.parse(HEADER + pairs), {"a": [2]})

    def test_keeps_missing_strings_apart(self):
        data = HEADER + VECTOR.pack(16, 2) + VECTOR.pack(9, -1) + chars("NA")
        self.assertEqual(r_data.parse(data), [None, "NA"])

    def test_refuses_what_is_cut_short(self):
        data = HEADER + named({"score": factor(["great"], 1), "review": strings("good")})
        for size in range(len(data)):
            with self.assertRaises(r_data.RDataError, msg=size):
                r_data.parse(data[:size])

    def test_refuses_other_types(self):
        with self.assertRaisesRegex(r_data.RDataError, "type 24"):
            r_data.parse(HEADER + VECTOR.pack(24, 1) + b"x")


class SwordTextTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)

    def write_testament(self, name, blocks, layout=sword_text.VERSE, repeat=1):
        """A block for each list of verses; each verse is named `repeat` times."""
        places, verses, data = b"", b"", b""
        for number, texts in enumerate(blocks):
            raw, begin = b"".join(text.encode() for text in texts), 0
            packed = zlib.compress(raw)
            places += sword_text.BLOCK.pack(len(data), len(packed), len(raw))
            data += packed
            for text in texts:
                verses += layout.pack(number, begin, len(text.encode())) * repeat
                begin += len(text.encode())
        for letter, content in zip("svz", (places, verses, data)):
            pathlib.Path(self.work.name, name + letter).write_bytes(content)

    def read(self):
        return sword_text.read_module(self.work.name)

    def test_reads_blocks_in_order(self):
        self.write_testament("nt.bz", [["Blessed ", "are"]])
        self.write_testament("ot.bz", [["<milestone/>"], ["In the", "", "beginning"], ["Now"]])
        self.assertEqual(self.read(), ["In the beginning", "Now", "Blessed are"])

    def test_reads_long_verses(self):
        self.write_testament("ot.cz", [["a" * 70000, "b"]], sword_text.LONG_VERSE)
        self.assertEqual(self.read(), ["a" * 70000 + " b"])

    def test_reads_shared_comments_once(self):
        self.write_testament("ot.bz", [["On verses 1 to 3."]], repeat=3)
        self.assertEqual(self.read(), ["On verses 1 to 3."])

    def test_refuses_verses_outside_the_text(self):
        self.write_testament("ot.bz", [["word"]])
        pathlib.Path(self.work.name, "ot.bzv").write_bytes(sword_text.VERSE.pack(0, 2, 3))
        with self.assertRaisesRegex(sword_text.SwordError, "outside"):
            self.read()

    def test_refuses_an_empty_folder(self):
        with self.assertRaisesRegex(sword_text.SwordError, "no ot"):
            self.read()

    def test_strips_markup(self):
        verse = ('<div type="x-p" sID="1"/> In <w lemma="H1">the</w> <w>beginning</w><note>See '
                 '<b>1</b></note><w>God</w> , &amp; man .<div type="x-p" eID="1"/> '
                 '<div type="x-p" sID="2"/>¶ And so.')
        self.assertEqual(sword_text.plain_text(verse), "In the beginning God, & man.\n\nAnd so.")

    def test_keeps_lines_of_poems(self):
        poem = '<l sID="1"/>He heals,<l eID="1"/> <l sID="2"/>and binds.<l eID="2"/> <lb/>Selah.'
        self.assertEqual(sword_text.plain_text(poem), "He heals,\nand binds.\nSelah.")


def packed(files):
    """A .tar.gz of name -> bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


class RatedTextsTest(unittest.TestCase):
    def read(self, files):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "rated-1.0.tar.gz"
            path.write_bytes(packed({f"rated-1.0/{name}": data for name, data in files.items()}))
            return rated_texts.read_package(path)

    def test_reads_words_then_sentences(self):
        sentences = {part: b"1\t-3.5\tIt broke.\r\n2\t0.1\tIt is grey.\n"
                     for part in rated_texts.PARTS}
        words = b":)\t2.0\t0.5\t[2]\ngood\t1.9\t0.9\t[2]\nmeh\t-0.3\t0.1\t[0]\n"
        self.assertEqual(self.read({rated_texts.LEXICON: words,
                                    rated_texts.SENTENCES: packed(sentences)}),
                         [("positive", "good")] + len(rated_texts.PARTS) * [("negative", "It broke.")])

    def test_names_what_is_missing(self):
        with self.assertRaisesRegex(ValueError, "there is no hutto_ICWSM_2014/amazonReview"):
            self.read({rated_texts.LEXICON: b"", rated_texts.SENTENCES: packed({})})


class WordnetTextTest(unittest.TestCase):
    def test_has_a_line_for_each_sense(self):
        text = ('\ndull\n    adj 1: lacking in liveliness; "a dull\n           party" [ant: {lively}]\n'
                '    2: tiresome; "a 2: 1 lead" [syn: {dull}, {long-\n       winded}, {slow}]\n'
                "    v 1: make dull\nlively day\n    n 1: a day\n")
        self.assertEqual(wordnet_text.read_senses(text), [
            'dull: lacking in liveliness; "a dull party"; not lively',
            'dull, long-winded, slow: tiresome; "a 2: 1 lead"', "dull: make dull", "lively day: a day"])

    def test_refuses_what_has_no_senses(self):
        with self.assertRaisesRegex(ValueError, "no word"):
            wordnet_text.read_senses("dull\n    not lively\n")


class FetchDataTest(unittest.TestCase):
    def run_it(self, *options, files=()):
        """What it says when no program can be found, and the files of these names."""
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(
                [sys.executable, "-B", TOOLS / "fetch_data", "--out", out, *options],
                env={"PATH": out}, capture_output=True, text=True, check=False)
            texts = [(pathlib.Path(out) / name).read_text() for name in files]
        self.assertEqual(done.returncode, 1)
        return done.stderr, *texts

    def books(self, text):
        """The two files of books, one text of which is packed."""
        with tempfile.NamedTemporaryFile(suffix=".xz") as file:
            file.write(lzma.compress(text.encode()))
            file.flush()
            return self.run_it("--hippodrome", __file__, "--books", file.name,
                               files=("books_train.txt", "books_valid.txt"))

    def test_keeps_a_book_for_validation(self):
        end = "\n<|endoftext|>\n"
        alice = "CHAPTER I. Down the Rabbit-Hole\n\nAlice was beginning to get very tired"
        said, train, valid = self.books(end.join(["The stag of Texas", alice, "", "Call me Ishmael."]))
        self.assertEqual(said, "fetch_data: there is no program apt-get\n")
        self.assertEqual(train, f"The stag of Texas{end}Call me Ishmael.\n")
        self.assertEqual(valid, alice + "\n")

    def test_asks_for_that_book(self):
        with tempfile.NamedTemporaryFile(mode="w") as file:
            file.write("The stag of Texas")
            file.flush()
            self.assertIn("no book to valid", self.run_it("--hippodrome", __file__, "--books", file.name)[0])

    def test_asks_for_the_program(self):
        self.assertEqual(self.run_it("--hippodrome", "/nowhere")[0],
                         "fetch_data: there is no program /nowhere: build it, or name it with "
                         "--hippodrome\n")

    def test_asks_for_apt(self):
        self.assertEqual(self.run_it("--hippodrome", __file__)[0],
                         "fetch_data: there is no program apt-get\n")


if __name__ == "__main__":
    unittest.main()
