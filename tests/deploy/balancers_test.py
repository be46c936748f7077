"""What HAProxy and nginx say of their configurations in deploy/.

  balancers_test.py haproxy|nginx

The exit status is 77 if the balancer is missing.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from testing import balancers

NAME = sys.argv.pop(1)
PROGRAM = balancers.program_of(NAME)


def said(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(NAME == "haproxy", "of HAProxy")
class HAProxyTest(unittest.TestCase):
    def test_configurations(self):
        for path in sorted((balancers.DEPLOY / "haproxy").iterdir()):
            with self.subTest(path.name):
                status, text = said("-c", "-f", path)
                self.assertEqual(status, 0, text)
                self.assertNotRegex(text, "ALERT|WARNING")


@unittest.skipUnless(NAME == "nginx", "of nginx")
class NginxTest(unittest.TestCase):
    def check(self, *names):
        with tempfile.TemporaryDirectory() as folder:
            return said("-t", "-e", "stderr", "-c", balancers.nginx_configuration(folder, names))

    def test_configuration(self):
        status, text = self.check()
        self.assertEqual(status, 0, text)
        self.assertNotRegex(text, r"\[(warn|error|alert|emerg)\]")

    def test_what_is_wrong_is_found(self):
        status, text = self.check(("least_conn;", "least_connections;"))
        self.assertNotEqual(status, 0, text)

    def test_posts_are_not_sent_twice(self):
        text = (balancers.DEPLOY / "nginx" / "replicas.conf").read_text()
        self.assertNotRegex(text, r"(?m)^[^#]*non_idempotent")


if __name__ == "__main__":
    unittest.main()
