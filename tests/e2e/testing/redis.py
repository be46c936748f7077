"""Redis, for stores that servers share."""

import contextlib
import socket
import subprocess
import tempfile
import urllib.parse

from testing.http_peers import wait_until


@contextlib.contextmanager
def running(program):
    """The address of a Redis without files."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        with subprocess.Popen([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                               "--dir", folder, "--logfile", folder + "/log"]) as process:
            try:
                assert wait_until(lambda: _pongs(port)), "Redis does not answer"
                yield f"redis://127.0.0.1:{port}/0"
            finally:
                process.kill()


def pause(address, milliseconds):
    """Has it take in commands, and answer none for so long."""
    assert _answer(urllib.parse.urlsplit(address).port, f"CLIENT PAUSE {milliseconds} ALL") == b"+OK\r\n"


def _answer(port, command):
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(100)


def _pongs(port):
    try:
        return _answer(port, "PING").startswith(b"+PONG")
    except OSError:
        return False
