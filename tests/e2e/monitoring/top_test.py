#!/usr/bin/env python3
"""`top` on a terminal of its own: it draws, follows the window's size, heeds keys and signals, puts the
terminal back, and goes on when the server is gone; then its snapshots for scripts.

  top_test.py HIPPODROME MODELS_DIR
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.http_peers import Server, arguments

given = arguments()
ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


class Top:
    """On a pseudo-terminal, as its session's leader."""

    def __init__(self, *options, rows=24, columns=80, **environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # The window has its size before the program starts.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(given.hippodrome, [given.hippodrome, "top", *options],
                      {"TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "", **environment})
        self.output = b""
        self.seen = 0

    def resize(self, rows, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, seconds):
        """False where nothing came in that time, or the program has gone."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.output += piece
        return bool(piece)

    def wait_for(self, pattern):
        """Until something new is drawn that looks so."""
        end = time.monotonic() + 60
        while not (found := re.search(pattern, self.output[self.seen:])):
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern} in {self.output[self.seen:][-3000:]}")
            self.read(0.2)
        self.seen += found.end()

    def press(self, key):
        os.write(self.terminal, key)

    def modes(self):
        return termios.tcgetattr(self.terminal)

    def end(self):
        """The exit status."""
        while self.read(60):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def frame(self):
        """The lines drawn last as a whole."""
        whole = self.output.split(b"\x1b[H")[-2 if self.output.count(b"\x1b[H") > 1 else -1]
        return whole.replace(b"\x1b[J", b"").replace(b"\x1b[K", b"").decode().replace("\r", "").split("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.terminal)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class TopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(given.hippodrome, given.models, "--admin", "127.0.0.1:0")
        cls.address = "%s:%d" % cls.server.http

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def top(self, *options, **how):
        return Top("--http", self.address, "--interval", "0.1", *options, **how)

    def test_draws_and_quits(self):
        with self.top() as top:
            top.wait_for(rb"\x1b\[H")
            for label in (rb"new tokens", rb"first token", rb"queue", rb"bigs-demo", rb"h3-demo", rb"q quit"):
                top.wait_for(label)
            top.wait_for("▁".encode())  # a history of nothing
            top.press(b"q")
            self.assertEqual(top.end(), 0)
            self.assertTrue(top.output.startswith(ENTER))
            self.assertTrue(top.output.endswith(LEAVE), top.output[-100:])
            self.assertEqual(len(top.frame()), 24)
            self.assertLessEqual(max(map(len, top.frame())), 80 + 60)  # with colours

    def test_puts_the_terminal_back(self):
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.top() as top:
                top.wait_for(rb"q quit")
                self.assertFalse(top.modes()[3] & (termios.ICANON | termios.ECHO))
                # On the other side of the terminal, to see its modes after the end.
                tty = os.open(os.readlink(f"/proc/{top.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
                self.addCleanup(os.close, tty)
                os.kill(top.pid, end)
                top.wait_for(re.escape(LEAVE))
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(top.pid, 0)[1]), 0)
                modes = termios.tcgetattr(tty)[3]
                self.assertEqual(modes & (termios.ICANON | termios.ECHO), termios.ICANON | termios.ECHO)
                self.assertTrue(top.output.endswith(LEAVE))

    def test_control_c_ends_it(self):
        with self.top() as top:
            top.wait_for(rb"q quit")
            top.press(b"\x03")
            self.assertEqual(top.end(), 0)
            self.assertTrue(top.output.endswith(LEAVE))

    def test_follows_the_windows_size(self):
        with self.top(NO_COLOR="1") as top:
            top.wait_for(rb"q quit")
            for rows, columns in ((10, 40), (50, 160), (1, 5), (24, 80)):
                while top.read(0):
                    pass
                top.seen = len(top.output)
                top.resize(rows, columns)
                for _ in range(3):
                    top.wait_for(rb"\x1b\[J")
                frame = top.frame()
                self.assertLessEqual(len(frame), rows)
                self.assertLessEqual(max(map(len, frame)), columns)

    def test_without_colour(self):
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with self.top(**environment) as top:
                top.wait_for(rb"q quit")
                top.press(b"q")
                top.end()
                self.assertNotIn(b"m", b"".join(re.findall(rb"\x1b\[[0-9;?]*([a-zA-Z])", top.output)))
        with self.top() as top:
            top.wait_for(rb"\x1b\[1mhippodrome")
        with self.top(LC_ALL="C") as top:
            top.wait_for(rb"/s [^\r]*[.]")
            self.assertTrue(top.output.isascii())

    def test_keys(self):
        with self.top(NO_COLOR="1") as top:
            top.wait_for(rb"q quit")
            top.press(b"r")
            top.wait_for(rb"totals")
            top.press(b"p")
            top.wait_for(rb"paused")
            clock = re.search(r"\d\d:\d\d:\d\d", top.frame()[0])[0]
            time.sleep(1.5)
            top.press(b"x")  # draws again
            top.wait_for(rb"\x1b\[J")
            self.assertIn(clock, top.frame()[0])
            top.press(b"pr")
            top.wait_for(rb"/s ")
            top.press(b"q")
            self.assertEqual(top.end(), 0)

    def test_shows_what_the_server_does(self):
        with self.top(NO_COLOR="1") as top:
            top.wait_for(rb"q quit")
            answer = self.server.connect()
            self.addCleanup(answer.close)
            body = json.dumps({"model": "h3-demo", "prompt": "It was", "max_tokens": 20000, "ignore_eos": True,
                               "stream": True}).encode()
            answer.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            top.wait_for(rb"new tokens +[1-9]")
            top.wait_for(rb"running 1")
            top.wait_for(rb"h3-demo +[1-9][^\r]* 1/64")

    def test_a_server_that_is_gone(self):
        with Server(given.hippodrome, given.models) as server, \
                Top("--http", "%s:%d" % server.http, "--interval", "0.1", NO_COLOR="1") as top:
            top.wait_for(rb"queue")
            server.stop()
            top.wait_for(rb"cannot connect to [^\r]*trying again")
            self.assertIn("queue", " ".join(top.frame()))
            top.press(b"q")
            self.assertEqual(top.end(), 0)

    def run_top(self, *options):
        return subprocess.run([given.hippodrome, "top", *options], capture_output=True, text=True)

    def test_snapshots(self):
        for where in (self.server.http, self.server.admin):
            done = self.run_top("--http", "%s:%d" % where, "--interval", "0.1", "--once")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith("hippodrome "))
            self.assertIn("h3-demo", done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            self.assertNotIn("q quit", done.stdout)
        done = self.run_top("--http", self.address, "--interval", "0.1", "--once", "--json")
        figures = json.loads(done.stdout)
        self.assertEqual([model["model"] for model in figures["models"]], ["bigs-demo", "h3-demo"])
        self.assertGreater(figures["seconds"], 0)
        self.assertGreater(figures["models"][1]["state_budget_bytes"], 0)

    def test_calls_over_grpc_count(self):
        with subprocess.Popen([given.hippodrome, "bench", "serve", "--grpc", "%s:%d" % self.server.address("grpc"),
                               "--prompt", "2", "--tokens", "2", "--concurrency", "2", "--duration", "5"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            time.sleep(0.5)
            done = self.run_top("--http", self.address, "--interval", "1", "--once", "--json")
            load.terminate()
        # More than the readings themselves.
        self.assertGreater(json.loads(done.stdout)["requests"], 5)

    def test_errors(self):
        done = self.run_top("--http", self.address, "--interval", "0")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.run_top("--http", "nowhere", "--once").returncode, 2)
        done = self.run_top("--http", "127.0.0.1:1", "--once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot connect", done.stderr)
        # No terminal at all: a session of its own has none.
        done = subprocess.run([given.hippodrome, "top", "--http", self.address], capture_output=True, text=True,
                              start_new_session=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--once", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=["top_test.py"])
