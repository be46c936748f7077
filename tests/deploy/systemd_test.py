"""The unit of deploy/systemd: what systemd says of it, and the server under its filters of system calls.

  systemd_test.py HIPPODROME MODELS_DIR

tests/e2e/deploy/operate_test.py --long starts the unit with systemd itself. The exit status is 77 if
systemd-analyze or libseccomp is missing.
"""

import ctypes
import errno
import json
import mmap
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from testing import http_peers

PROGRAM, MODELS = sys.argv[1:3]
UNIT = (ROOT / "deploy" / "systemd" / "hippodrome.service").read_text()


def setting(name):
    return [found.strip() for found in re.findall(rf"^{name}=(.*)$", UNIT, re.M)]


def analyze(*arguments):
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def calls_of(name):
    """The system calls of a set as systemd has it, sets within it included."""
    _, said = analyze("syscall-filter", name)
    found = set()
    for word in re.findall(r"^    ([@\w-]+)$", said, re.M):
        found |= calls_of(word) if word.startswith("@") else {word}
    return found


class Compare(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


EQUAL, MASKED_EQUAL = 4, 7
MOST_FAMILIES = 46  # AF_MAX
ALLOW = 0x7FFF0000


def refuse(error):
    return 0x00050000 | error


class Filter:
    """Of system calls, as libseccomp makes it."""

    def __init__(self, library, default):
        self.library = library
        self.context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))

    def add(self, action, call, *compare):
        number = self.library.seccomp_syscall_resolve_name(call.encode())
        compare = (Compare * len(compare))(*compare)
        done = self.library.seccomp_rule_add_array(self.context, ctypes.c_uint32(action), number,
                                                   len(compare), compare)
        assert done == 0 or number < 0, (call, done)

    def load(self):
        done = self.library.seccomp_load(self.context)
        assert done == 0, done


class Sandbox:
    """What the unit says, made ready before a process is started, and entered in it."""

    def __init__(self, library):
        allowed = set()
        for line in setting("SystemCallFilter"):
            for word in line.lstrip("~").split():
                calls = calls_of(word)
                assert calls, word
                allowed = allowed - calls if line.startswith("~") else allowed | calls
        calls = Filter(library, refuse(errno.EPERM))
        for call in sorted(allowed | {"seccomp"}):  # to load the next ones
            calls.add(ALLOW, call)
        # As systemd does MemoryDenyWriteExecute and RestrictAddressFamilies.
        memory = Filter(library, ALLOW)
        assert setting("MemoryDenyWriteExecute") == ["yes"]
        both = mmap.PROT_WRITE | mmap.PROT_EXEC
        memory.add(refuse(errno.EPERM), "mmap", Compare(2, MASKED_EQUAL, both, both))
        for call in ("mprotect", "pkey_mprotect"):
            memory.add(refuse(errno.EPERM), call,
                       Compare(2, MASKED_EQUAL, mmap.PROT_EXEC, mmap.PROT_EXEC))
        families = Filter(library, ALLOW)
        listed = {getattr(socket, name) for name in setting("RestrictAddressFamilies")[0].split()}
        for family in set(range(MOST_FAMILIES)) - listed:
            families.add(refuse(errno.EAFNOSUPPORT), "socket", Compare(0, EQUAL, family, 0))
        self.filters = [calls, memory, families]

    def enter(self):
        for each in self.filters:
            each.load()


class UnitTest(unittest.TestCase):
    def test_systemd_takes_it(self):
        with tempfile.TemporaryDirectory() as work:
            unit = pathlib.Path(work, "hippodrome.service")
            unit.write_text(UNIT.replace("/usr/bin/hippodrome ", os.path.abspath(PROGRAM) + " "))
            status, said = analyze("verify", "--man=no", str(unit))
            # Other units of the machine may have faults of their own.
            self.assertEqual((status, [line for line in said.splitlines() if "hippodrome" in line]), (0, []))

    def test_its_score_is_the_stated_one(self):
        stated = re.search(r"`systemd-analyze security` gives it ([\d.]+)",
                           (ROOT / "docs" / "operate.md").read_text())[1]
        with tempfile.TemporaryDirectory() as work:
            shutil.copy(ROOT / "deploy" / "systemd" / "hippodrome.service", work)
            threshold = round(float(stated) * 10)
            path = os.path.join(work, "hippodrome.service")
            status, said = analyze("security", "--offline=yes", f"--threshold={threshold}", path)
            self.assertIn(f"Overall exposure level for hippodrome.service: {stated} ", said)
            self.assertEqual(status, 0)
            self.assertNotEqual(analyze("security", "--offline=yes", f"--threshold={threshold - 1}", path)[0], 0)

    def test_it_says_what_the_program_takes(self):
        options = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True).stdout
        self.assertEqual(setting("ExecStart"), ["/usr/bin/hippodrome serve --config /etc/hippodrome/config.json"])
        config = json.loads((ROOT / "deploy" / "systemd" / "config.json").read_text())
        for name in ("config", *config):
            self.assertRegex(options, rf"(?m)^  --{name} ")
        grace = int(re.search(r"--grace-seconds N.*?\(default: (\d+)\)", options, re.S)[1])
        delay = int(re.search(r"--drain-delay N.*?\(default: (\d+)\)", options, re.S)[1])
        self.assertGreaterEqual(int(setting("TimeoutStopSec")[0]), grace + delay + 10)


class FilterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sandbox = Sandbox(LIBRARY)

    def try_inside(self, statement):
        """The error of a Python statement under the filters."""
        code = f"import mmap, socket, ctypes, os\ntry:\n  {statement}\nexcept OSError as e: print(e.errno)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              preexec_fn=self.sandbox.enter)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout or 0)

    def test_the_filters_are_in_force(self):
        self.assertEqual(self.try_inside("mmap.mmap(-1, 4096, prot=3)"), 0)
        self.assertEqual(self.try_inside("mmap.mmap(-1, 4096, prot=7)"), errno.EPERM)
        self.assertEqual(self.try_inside("socket.socket(socket.AF_INET)"), 0)
        self.assertEqual(self.try_inside("socket.socket(socket.AF_UNIX)"), errno.EAFNOSUPPORT)
        self.assertEqual(self.try_inside("os.chroot('/')"), errno.EPERM)

    def test_the_server_runs_under_them(self):
        with http_peers.Server(PROGRAM, MODELS, "--admin", "127.0.0.1:0",
                               before=self.sandbox.enter) as server:
            self.assertEqual(server.send(http_peers.generate("It was a dark night, and", 8))[0], 200)
            classify = http_peers.request("/predict", b'{"inputs": "My dogs love these treats."}')
            self.assertEqual(server.send(classify)[0], 200)
            self.assertEqual(server.get("/metrics", server.admin)[0], 200)
            with open(f"/proc/{server.pid}/status") as file:
                status = file.read()
            self.assertRegex(status, r"(?m)^Seccomp:\s+2$")
            self.assertRegex(status, r"(?m)^NoNewPrivs:\s+1$")
            server.signal()
            self.assertEqual(server.process.wait(), 0)


if __name__ == "__main__":
    try:
        LIBRARY = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        LIBRARY = None
    if LIBRARY is None or not shutil.which("systemd-analyze"):
        print("systemd-analyze or libseccomp is missing; tools/deps --checks installs them")
        sys.exit(77)
    LIBRARY.seccomp_init.restype = ctypes.c_void_p
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
