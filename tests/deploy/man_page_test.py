"""Tests that the manual page tells of every command and option, and that man takes it.

  man_page_test.py HIPPODROME
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
hippodrome = ""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class ManPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = output(ROOT / "deploy/man_page", hippodrome)
        # As read: without requests and fonts.
        cls.text = re.sub(r"\\f.|^\.TH.*\n", "", cls.page, flags=re.M).replace(r"\-", "-")

    def section(self, title):
        found = re.search(rf'^\.SS "{re.escape(title)}"\n(.*?)(?=^\.S|\Z)', self.text, re.M | re.S)
        self.assertIsNotNone(found, title)
        return found[1]

    def test_sections(self):
        self.assertEqual(
            re.findall(r"^\.SH (.*)", self.page, re.M),
            ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS",
             "COMMANDS IN DETAIL"])
        self.assertRegex(self.page, r'\A\.TH HIPPODROME 1 "\d{4}-\d\d-\d\d" "hippodrome \d+\.')

    def test_every_command_has_its_options(self):
        pending = [[]]
        while pending:
            path = pending.pop()
            told = output(hippodrome, *(name.split("|")[0] for name in path), "--help")
            if path:
                text = self.section(" ".join(path))
                for option in re.findall(r"^  (--[a-z0-9-]+)", told, re.M):
                    self.assertRegex(text, rf"(?m)^{option}( |$)", path)
            listed = re.search(r"^Commands:\n((?:  .*\n)+)", told, re.M)
            pending += [[*path, name] for name in
                        re.findall(r"^  (\S+)", listed[1], re.M)] if listed else []

    def test_man_takes_it(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1") as page:
            page.write(self.page)
            page.flush()
            for command in ["man", "--warnings", "-l"], ["mandoc", "-T", "lint", "-W", "warning"]:
                if shutil.which(command[0]):
                    done = subprocess.run([*command, page.name], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    hippodrome = sys.argv.pop(1)
    unittest.main()
