#!/usr/bin/env python3
"""Static analysis of each source alone, remembered by content. tools/lint calls it.

  tools/tidy.py BUILD_DIR

clang-tidy reads every source of kernels, engine, clients, server and tools with the command of BUILD_DIR's
compile_commands.json, in which no sources are compiled together. Headers that no source includes
first are compiled by themselves. So what is left out of an #include is found here, although the
build, which compiles sources together, may not see it.

What passed is remembered in the compiler cache's folder, under a hash of the source, its command,
.clang-tidy and the version of the checker, with the hashes of all headers that were read; it counts
as long as all of them are the same. Failures are not remembered.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

ROOMS = ("kernels", "engine", "clients", "server", "tools")
TIDY = "build/python/bin/clang-tidy"  # of tests/requirements.txt
CLANG = "clang++-19"
# States of its headers that are remembered for a task, as branches have them.
KEPT = 4
# Commands are GCC's: Clang need not know all their warnings.
CLANG_OPTIONS = ["-Wno-unknown-warning-option", "-Wno-deprecated-declarations"]
NOISE = re.compile(r"^\d+ warnings? generated\.|^Suppressed |^Use -header-filter|^\.+ |^Multiple include guards|^/.*\.h(pp)?$")


@functools.lru_cache(maxsize=None)
def hash_of_file(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def place(path):
    """Relative to the clone within it, so that other clones find it too; absolute elsewhere."""
    path = os.path.abspath(path)
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Memory:
    """What passed, one file for each hash of a task."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "tidy-passed"
        self.folder.mkdir(parents=True, exist_ok=True)

    def known(self, key):
        """Header to hash, for each of the last times that the task passed."""
        try:
            return json.loads((self.folder / key).read_text())
        except (OSError, ValueError):
            return []

    def passed(self, key):
        return any(all(hash_of_file(path) == value for path, value in headers.items())
                   for headers in self.known(key))

    def remember(self, key, headers):
        part = self.folder / f"{key}.{os.getpid()}.{threading.get_ident()}"
        now = {path: hash_of_file(path) for path in headers}
        part.write_text(json.dumps([*self.known(key)[1 - KEPT:], now]))
        part.rename(self.folder / key)


class Checker:
    def __init__(self, build, memory):
        self.build = build
        self.memory = memory
        self.version = output(TIDY, "--version") + hash_of_file(".clang-tidy")
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            source = os.path.relpath(entry["file"])
            self.commands.setdefault(source, shlex.split(entry["command"]))

    def check_source(self, source):
        command = [TIDY, "-p", str(self.build), "--quiet", "--extra-arg=-H"]
        command += [f"--extra-arg={option}" for option in CLANG_OPTIONS]
        # Without the place of the clone. What this build leaves out, clang-tidy reads like its
        # neighbours.
        flags = [word.replace(os.getcwd(), "") for word in self.commands.get(source, [])]
        return self.check(source, command + [source], repr(flags))

    def check_header(self, header):
        command = [CLANG, "-std=c++20", "-fsyntax-only", "-Werror", "-Wall", "-Wno-pragma-once-outside-header",
                   "-I.", f"-I{self.build}/proto", "-H", "-x", "c++", header]
        return self.check(header, command, "header")

    def check(self, path, command, what):
        """Nothing, or what is wrong."""
        key = hashlib.sha256(repr((path, hash_of_file(path), what, self.version)).encode()).hexdigest()
        if self.memory.passed(key):
            return None
        done = subprocess.run(command, capture_output=True, text=True)
        lines = (done.stdout + done.stderr).splitlines()
        if done.returncode == 0:
            headers = {line.lstrip(".").strip() for line in lines if re.match(r"\.+ ", line)}
            self.memory.remember(key, sorted(map(place, headers)))
            return ""
        return "\n".join(line for line in lines if not NOISE.match(line)) or f"{path}: failed"


def first_include(source):
    match = re.search(r'^#include "([^"]+)"', pathlib.Path(source).read_text(), re.MULTILINE)
    return match and match.group(1)


def tasks_of(checker):
    sources = output("git", "ls-files", *(f"{room}/*.cc" for room in ROOMS)).split()
    first = {first_include(source) for source in sources}
    # The kernels' sources belong to nvcc and the emulator; -inl.h are included once per target.
    headers = [header for header in output("git", "ls-files", *(f"{room}/*.h" for room in ROOMS)).split()
               if header not in first and not header.startswith("kernels/cuda/")
               and not header.endswith("-inl.h")]
    return ([functools.partial(checker.check_source, source) for source in sources] +
            [functools.partial(checker.check_header, header) for header in headers])


def main():
    if not pathlib.Path(TIDY).exists():
        sys.exit(f"tools/tidy.py: no {TIDY}; tools/deps --checks installs it")
    build = pathlib.Path(sys.argv[1])
    memory = Memory(output("ccache", "--get-config", "cache_dir").strip())
    tasks = tasks_of(Checker(build, memory))
    failed = remembered = 0
    said = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(task) for task in tasks]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            problem = future.result()
            remembered += problem is None
            if problem:
                failed += 1
                print(problem, flush=True)
            if time.monotonic() - said > 30:
                said = time.monotonic()
                print(f"tidy: {done} of {len(tasks)}", flush=True)
    print(f"tidy: {len(tasks)} read, {remembered} of them as remembered, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
