"""The client of docs/, with two servers in turn: it says what it says with one.

  state_client_test.py HIPPODROME MODEL_DIR
"""

import os
import re
import subprocess
import sys
import tempfile
import urllib.request

from testing.hostile_peers import Hippodrome

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/state_client.py")
LINES = "It was a dark night,\n and the wind\n\n Then she said that\n the house\n"


def talk(*servers):
    done = subprocess.run([sys.executable, "-B", CLIENT, *("http://" + server.http for server in servers)], input=LINES,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def taken_in(servers):
    """Prompt tokens that servers took in, of all requests."""
    count = 0
    for server in servers:
        with urllib.request.urlopen(f"http://{server.http}/metrics") as answer:
            text = answer.read().decode()
        count += int(re.search(r"^hippodrome_prompt_tokens_total\{.*\} (\d+)$", text, re.M)[1])
    return count


def main():
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        servers = [Hippodrome(program, model, os.path.join(folder, f"log{i}")) for i in range(2)]
        try:
            alone = talk(servers[0])
            once = taken_in(servers)
            both = talk(*servers)
            twice = taken_in(servers)
        finally:
            codes = [server.stop() for server in servers]
    assert len(alone) > len(LINES), alone
    assert both == alone, (both, alone)
    assert twice == 2 * once, (once, twice)  # nothing again
    assert codes == [0, 0], codes


if __name__ == "__main__":
    main()
