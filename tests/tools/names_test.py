"""Tests tools/names.py on sources made here.

  names_test.py
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

NAMES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "names.py"


def local(text, outer="room"):
    return f"namespace {outer} {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace {outer}\n"


class NamesTest(unittest.TestCase):
    def check(self, *sources, folders=()):
        """Exit status and output for these sources, compiled together, and folders."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            unity = root / "build" / "unity" / "shelf" / "1.cc"
            unity.parent.mkdir(parents=True)
            paths = [root / f"{i}.cc" for i in range(len(sources))]
            for path, source in zip(paths, sources):
                path.write_text(source)
            unity.write_text("".join(f'#include "{path}"\n' for path in paths))
            (root / "build" / "compile_commands.json").write_text(json.dumps([{"file": str(unity)}]))
            done = subprocess.run([sys.executable, "-B", NAMES, root / "build", *folders],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_a_constant_of_two_sources_clashes(self):
        code, text = self.check(local("constexpr int kTasks = 8;"), local("constexpr int kTasks = 4;"))
        self.assertEqual(code, 1)
        self.assertIn("shelf: kTasks is defined in", text)

    def test_an_overload_clashes(self):
        code, _ = self.check(local("int Size(int x) { return x; }"),
                             local("double Size(double x) { return x; }"))
        self.assertEqual(code, 1)

    def test_a_namespace_within_the_other_sees_its_names(self):
        code, _ = self.check(local("struct Block {};"), local("struct Block {};", "room::corner"))
        self.assertEqual(code, 1)

    def test_namespaces_side_by_side_do_not(self):
        code, _ = self.check(local("struct Block {};", "room::a"), local("struct Block {};", "room::b"))
        self.assertEqual(code, 0)

    def test_an_alias_may_be_repeated_word_for_word(self):
        same = local("using Json = nlohmann::json;")
        self.assertEqual(self.check(same, same)[0], 0)
        self.assertEqual(self.check(same, local("using Json = nlohmann::ordered_json;"))[0], 1)

    def test_names_within_functions_and_types_do_not_count(self):
        code, _ = self.check(local("int F() {\n  int x = 1;\n  return x;\n}"),
                             local("int G() {\n  int x = 2;\n  return x;\n}"))
        self.assertEqual(code, 0)

    def test_functions_of_different_classes_do_not_clash(self):
        def reader(name):
            return local(f"struct {name} {{\n  int Read(int x);\n}};\nint {name}::Read(int x) {{\n}}")
        self.assertEqual(self.check(reader("Text"), reader("Table"))[0], 0)
        self.assertEqual(self.check(reader("Text"), reader("Text"))[0], 1)

    def check_types(self, *headers):
        """Exit status and output for these headers, beside sources without a clash."""
        with tempfile.TemporaryDirectory() as folder:
            for i, header in enumerate(headers):
                text = f"namespace room {{\n\n{header}\n\n}}  // namespace room\n"
                (pathlib.Path(folder) / f"{i}.h").write_text(text)
            return self.check(local("constexpr int kTasks = 8;"), folders=[folder])

    def test_two_types_of_one_name_clash(self):
        code, text = self.check_types("struct Chair {\n  int legs;\n};", "class alignas(8) Chair {};")
        self.assertEqual(code, 1)
        self.assertIn("room::Chair is a type in", text)

    def test_declarations_members_and_specializations_are_no_types_of_their_own(self):
        chair = "struct Chair {\n  struct Leg;\n};"
        for other in ("struct Chair;", "struct Chair::Leg {\n  int length;\n};",
                      "template <>\nstruct Chair<int> {\n};", chair,
                      "namespace attic {\n\nstruct Chair {};\n\n}  // namespace attic",
                      "namespace {\n\nstruct Chair {};\n\n}  // namespace"):
            self.assertEqual(self.check_types(chair, other)[0], 0, other)

    def test_a_build_without_such_sources_is_an_error(self):
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
