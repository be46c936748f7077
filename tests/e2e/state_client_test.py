"""The client of docs/, with two servers in turn, one of which stops in the end: it says what it says with one.

  state_client_test.py HIPPODROME MODEL_DIR
"""

import collections
import importlib.util
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


def check_migrated(server):
    """Answers that end early, as those of a server that stops do, within the prompt and behind it: the client goes on."""
    spec = importlib.util.spec_from_file_location("state_client", CLIENT)
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    servers, ask = collections.deque(["http://" + server.http]), client.ask
    whole, _ = client.complete(servers, LINES, None)

    def begin(early):
        def first(servers, path, body):
            if path == "/tokenize":
                return ask(servers, path, body)
            client.ask = ask
            answer = ask(servers, path, {**body, "return_state": "handle", **early(body)})
            answer["choices"][0]["finish_reason"] = "migrated"
            if answer["usage"]["completion_tokens"] == 0:
                answer["choices"][0]["text"] = ""  # the echo
            answer["usage"]["prompt_tokens"] = len(body["prompt"])
            return answer
        client.ask = first

    for early in (lambda body: {"max_tokens": 9},
                  lambda body: {"max_tokens": 0, "echo": True, "prompt": body["prompt"][:8]}):
        begin(early)
        text, _ = client.complete(servers, LINES, None)
        assert text == whole, (text, whole)


def main():
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        codes = []
        servers = [Hippodrome(program, model, os.path.join(folder, f"log{i}")) for i in range(2)]
        try:
            alone = talk(servers[0])
            once = taken_in(servers)
            both = talk(*servers)
            twice = taken_in(servers)
            check_migrated(servers[1])
            codes.append(servers[0].stop())
            one = talk(*servers)
        finally:
            for server in servers:
                if server.process.poll() is None:
                    codes.append(server.stop())
    assert len(alone) > len(LINES), alone
    assert both == alone, (both, alone)
    assert one == alone, (one, alone)
    assert twice == 2 * once, (once, twice)  # nothing again
    assert codes == [0, 0], codes


if __name__ == "__main__":
    main()
