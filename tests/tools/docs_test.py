"""Tests that the files, folders and names that the documentation quotes exist.

  docs_test.py
"""

import functools
import itertools
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (".h", ".cc", ".cu", ".cuh", ".py")


@functools.cache
def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


@functools.cache
def words():
    """All names in the sources."""
    found = set()
    for path in tracked():
        if path.endswith(SOURCES):
            found.update(re.findall(r"\w+", (ROOT / path).read_text()))
    return found


def expanded(quoted):
    """'{a,b}_c' to 'a_c' and 'b_c'."""
    parts = [part.split(",") for part in re.split(r"\{(.*?)\}", quoted)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def missing(quoted):
    """Of a quotation, what looks like a file, folder or name and is none."""
    top = {path.split("/")[0] for path in tracked() if "/" in path}
    if re.fullmatch(r"[\w{},./-]+", quoted) and quoted.split("/")[0] in top:
        return [p for p in expanded(quoted) if "/" in p and not re.search(r"[A-Z]{3}", p)
                and not (ROOT / p).exists()]
    if re.fullmatch(r"[\w{},-]+\.(h|cc|cu|cuh|py|proto)", quoted):
        names = {pathlib.PurePosixPath(path).name for path in tracked()}
        return [name for name in expanded(quoted) if name not in names]
    if re.fullmatch(r"[A-Z]\w*[a-z]\w*(::\w+)*(\(\))?", quoted):
        return [name for name in re.findall(r"\w+", quoted) if name not in words()]
    return []


class DocsTest(unittest.TestCase):
    def test_what_is_quoted_exists(self):
        pages = [path for path in tracked() if path.endswith(".md")
                 and not path.startswith(("tests/benchmarks", "tests/testdata"))]
        self.assertGreater(len(pages), 5)
        for page in pages:
            text = re.sub(r"^(    [^\n]*|```.*?^```)$", "", (ROOT / page).read_text(),
                          flags=re.M | re.S)
            for quoted in re.findall(r"`([^`\n]+)`", text):
                self.assertEqual(missing(quoted), [], f"{page}: `{quoted}`")

    def test_what_does_not_exist_is_found(self):
        self.assertEqual(missing("kernels/cpu/nothing.h"), ["kernels/cpu/nothing.h"])
        self.assertEqual(missing("nothing_{a,b}.cuh"), ["nothing_a.cuh", "nothing_b.cuh"])
        self.assertEqual(missing("Backend::Xyz" + "zy"), ["Xyz" + "zy"])
        self.assertEqual(missing("kernels/backend.h"), [])
        self.assertEqual(missing("Backend::Linear"), [])


if __name__ == "__main__":
    unittest.main()
