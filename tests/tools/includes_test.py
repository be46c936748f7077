"""Tests tools/includes.py on folders made here.

  includes_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

INCLUDES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "includes.py"


class IncludesTest(unittest.TestCase):
    def check(self, **files):
        """Exit status and output for these files; "__" stands for "/", the last "_" for "."."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "CMakeLists.txt").write_text("hippodrome_folders(. low high tools tests)\n")
            for name, text in files.items():
                path = root / ".".join(name.replace("__", "/").rsplit("_", 1))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            subprocess.run(["git", "add", "."], cwd=root, check=True)
            done = subprocess.run([sys.executable, "-B", INCLUDES, root], capture_output=True,
                                  text=True, check=False)
            return done.returncode, done.stdout

    def test_the_order_is_allowed(self):
        code, text = self.check(low__a_h="", high__b_cc='#include "low/a.h"\n')
        self.assertEqual((code, text), (0, "includes: 2 sources, 1 ordered folders, 0 faults\n"))

    def test_against_the_order_is_a_fault(self):
        code, text = self.check(low__a_cc='#include "high/b.h"\n', high__b_h="")
        self.assertEqual(code, 1)
        self.assertIn("low/a.cc: includes high/b.h, but high comes after low", text)

    def test_folders_below_count_as_theirs(self):
        code, _ = self.check(low__deep__a_cc='#include "high/deep/b.h"\n', high__deep__b_h="")
        self.assertEqual(code, 1)

    def test_what_lies_beside_the_folders_may_include_and_be_included(self):
        code, _ = self.check(all_h="", low__a_h='#include "all.h"\n', join_cc='#include "low/a.h"\n')
        self.assertEqual(code, 0)

    def test_a_folder_that_is_not_named_is_a_fault(self):
        code, text = self.check(middle__a_h="")
        self.assertEqual(code, 1)
        self.assertIn("middle: not named in hippodrome_folders() of .", text)

    def test_a_header_of_one_source_is_a_fault(self):
        code, text = self.check(tools__a_h="", tools__a_cc='#include "tools/a.h"\n',
                                tools__b_cc='#include "tools/a.h"\n',
                                tests__a_test_cc='#include "tools/a.h"\n')
        self.assertEqual(code, 1)
        self.assertIn("tools/a.h: only tools/b.cc includes it: merge it, or list it", text)

    def test_a_header_of_several_sources_has_its_reason(self):
        code, text = self.check(tools__a_h="", tools__b_cc='#include "tools/a.h"\n',
                                tools__c_cuh='#  include "tools/a.h"\n',
                                tools__c_cu='#include "tools/c.cuh"\n')
        self.assertEqual((code, text), (0, "includes: 4 sources, 1 ordered folders, 0 faults\n"))

    LISTED = ("target_sources(library PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES\n"
              "  low/a.h\n)\n")

    def test_so_has_a_contract_that_is_listed(self):
        code, _ = self.check(tools__low__a_h="", tools__b_cc='#include "tools/low/a.h"\n',
                             tools__CMakeLists_txt=self.LISTED)
        self.assertEqual(code, 0)

    def test_a_listed_header_that_does_not_exist_is_a_fault(self):
        code, text = self.check(tools__b_cc="", tools__CMakeLists_txt=self.LISTED)
        self.assertEqual(code, 1)
        self.assertIn("tools/CMakeLists.txt: lists tools/low/a.h, which does not exist", text)

    def test_a_header_that_nobody_includes_is_a_fault(self):
        code, text = self.check(tools__a_h="", tools__a_cc='#include "tools/a.h"\n')
        self.assertEqual(code, 1)
        self.assertIn("tools/a.h: nobody includes it", text)

    def test_a_header_for_tests_alone_is_none(self):
        code, _ = self.check(tools__a_h="", tests__a_test_cc='#include "tools/a.h"\n')
        self.assertEqual(code, 0)

    def test_the_closure_of_the_prefill_is_small(self):
        prefill = "kernels/cpu/h3/h3_prefill.cc"
        done = subprocess.run([sys.executable, "-B", INCLUDES, "--closure", prefill],
                              cwd=INCLUDES.parents[1], capture_output=True, text=True, check=True)
        headers = done.stdout.split()
        self.assertIn("kernels/cpu/h3/h3_prefill.h", headers)
        self.assertIn("kernels/dtype.h", headers)  # which it includes through others alone
        self.assertLessEqual(len(headers), 17, headers)


if __name__ == "__main__":
    unittest.main()
