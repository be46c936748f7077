"""Tests what tools/tidy.py remembers, without a checker.

  tidy_test.py
"""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import tidy  # pylint: disable=wrong-import-position


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.header = pathlib.Path(self.folder.name) / "a.h"
        self.header.write_text("int a;")
        self.memory = tidy.Memory(self.folder.name)
        tidy.hash_of_file.cache_clear()

    def test_what_passed_counts_until_a_header_changes(self):
        self.assertFalse(self.memory.passed("key"))
        self.memory.remember("key", [str(self.header)])
        self.assertTrue(self.memory.passed("key"))
        self.assertFalse(self.memory.passed("other"))
        self.header.write_text("int b;")
        tidy.hash_of_file.cache_clear()
        self.assertFalse(self.memory.passed("key"))

    def test_the_last_states_are_all_remembered(self):
        texts = [f"int a{i};" for i in range(tidy.KEPT + 1)]
        for text in texts:
            self.header.write_text(text)
            tidy.hash_of_file.cache_clear()
            self.memory.remember("key", [str(self.header)])
        found = []
        for text in texts:
            self.header.write_text(text)
            tidy.hash_of_file.cache_clear()
            found.append(self.memory.passed("key"))
        self.assertEqual(found, [False] + [True] * tidy.KEPT)

    def test_a_header_that_is_gone_has_changed(self):
        self.memory.remember("key", [str(self.header)])
        self.header.unlink()
        tidy.hash_of_file.cache_clear()
        self.assertFalse(self.memory.passed("key"))

    def test_broken_entries_count_for_nothing(self):
        self.memory.remember("key", [str(self.header)])
        (pathlib.Path(self.folder.name) / "tidy-passed" / "key").write_text("{")
        self.assertFalse(self.memory.passed("key"))


class PlaceTest(unittest.TestCase):
    def test_only_the_clone_may_lie_elsewhere(self):
        self.assertEqual(tidy.place(os.path.join(os.getcwd(), "kernels", "a.h")), "kernels/a.h")
        self.assertEqual(tidy.place("/usr/include/a.h"), "/usr/include/a.h")


if __name__ == "__main__":
    unittest.main()
