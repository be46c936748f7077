"""Tests that the help of every command has the one style, which the manual page and the completion
are made from, and tells of all options that there are.

  help_style_test.py HIPPODROME
"""

import functools
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["Usage", "Arguments", "Commands", "Options", "Exit status"]
hippodrome = ""


def run(*arguments):
    return subprocess.run([hippodrome, *arguments], capture_output=True, text=True)


@functools.cache
def help_of(command):
    done = run(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def sections(text):
    """The entries of each section, as (label, meaning)."""
    found = {}
    for title, body in re.findall(r"^([A-Z][a-z ]+):\n((?:  .*\n)+)", text, re.M):
        entries = re.findall(r"^  (\S+(?: \S+)*)(.*\n(?:    .*\n)*)", body, re.M)
        found[title] = [(label, " ".join(meaning.split())) for label, meaning in entries]
    return found


def names(entries):
    return [name for label, _ in entries for name in label.split("|")]


@functools.cache
def commands():
    """All of them, "" for the program itself."""
    found = [""]
    for command in found:
        of = names(sections(help_of(command)).get("Commands", []))
        found += [f"{command} {name}".strip() for name in of]
    return found


def options(command):
    """(name, whether it has a value) of all but --help."""
    labels = [label for label, _ in sections(help_of(command))["Options"]]
    return [(label.split()[0][2:], " " in label) for label in labels if label != "-h, --help"]


class HelpStyleTest(unittest.TestCase):
    def each(self):
        for command in commands():
            with self.subTest(command=command):
                yield command

    def test_all_commands_are_there(self):
        self.assertGreater(len(commands()), 25)
        some = {"", "serve", "eval rte", "bench generate", "tokenizer train"}
        self.assertLess(some, set(commands()))

    def test_layout(self):
        for command in self.each():
            text = help_of(command)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
                self.assertEqual(line, line.rstrip())
                self.assertNotIn("\t", line)
            self.assertRegex(text, r"\A[A-Z][^\n]+\.\n\nUsage:\n  hippodrome")
            self.assertTrue(text.endswith("\n") and "\n\n\n" not in text)
            titles = list(sections(text))
            self.assertEqual(titles, [title for title in SECTIONS if title in titles])
            self.assertIn("Options", titles)
            self.assertEqual([label for label, _ in sections(text)["Exit status"]], ["0", "1", "2"])

    def test_entries_are_aligned_and_say_something(self):
        for command in self.each():
            for title, entries in sections(help_of(command)).items():
                for label, meaning in entries:
                    if title != "Usage":
                        self.assertTrue(meaning, f"{title}: {label}")
                        self.assertNotRegex(meaning, r"^[A-Z][a-z]+ [a-z]|\.$", f"{title}: {label}")
            lists = r"^(?:Arguments|Commands|Options):\n((?:  .*\n)+)"
            for body in re.findall(lists, help_of(command), re.M):
                starts = {match.end() for line in body.splitlines()
                          if (match := re.match(r"    +|  \S+(?: \S+)*  +", line))}
                self.assertEqual(len(starts), 1, body)

    def test_usage_names_options_of_the_command(self):
        for command in self.each():
            known = {name for name, _ in options(command)}
            for form, _ in sections(help_of(command))["Usage"]:
                self.assertTrue(form.startswith(f"hippodrome {command}".strip()), form)
                self.assertLessEqual(set(re.findall(r"--([a-z0-9-]+)", form)), known)

    def test_the_parser_takes_what_the_help_tells(self):
        for command in self.each():
            if "Commands" in sections(help_of(command)):
                continue
            words = [word for name, valued in options(command)
                     for word in [f"--{name}"] + ["1"] * valued]
            done = run(*command.split(), *words, "--no-such-option")
            self.assertEqual(done.returncode, 2)
            self.assertTrue(
                done.stderr.startswith(f"hippodrome {command}: unknown option --no-such-option\n"),
                done.stderr)
            for name, valued in options(command):
                self.assertRegex(name, r"^[a-z][a-z0-9-]*$")

    def test_what_the_sources_ask_for_is_in_the_help(self):
        told = {name for command in commands() for name, _ in options(command)}
        asked = set()
        for path in (ROOT / "tools").rglob("*.cc"):
            getters = r"(?:line|arguments)\.(?:Has|Text|Required|All|Choice|Integer|Number)"
            asked |= set(re.findall(getters + r"\(\"([^\"]+)\"", path.read_text()))
        self.assertGreater(len(asked), 30)
        self.assertLessEqual(asked, told)

    def test_wrong_usage(self):
        for arguments in [], ["nothing"], ["eval"], ["eval", "nothing"], ["serve"]:
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertRegex(done.stderr.splitlines()[0], "^hippodrome( [a-z]+)*: ")

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^hippodrome [0-9]+\.[0-9]+\.[0-9]+\ncommit .+\ncompiler .+\n"
                         r"backends cpu(,cuda)?\ninstruction set [A-Z0-9_]+\n$")


if __name__ == "__main__":
    hippodrome = sys.argv.pop(1)
    unittest.main()
