"""State files that somebody has changed, sent to a server: each is refused, or says the same as before.

  damaged_states_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

Bits are flipped, ends cut off and parts put in place of those of another state. Each file comes as an upload, inside
a completion, and inside a call of gRPC. What is there under the handle that an upload names stays as it was, and
what the server has in use comes back. --long: 3,000 files, the short form 60.
"""

import base64
import collections
import contextlib
import http.client
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import grpc_messages, http_peers
from testing.grpc_messages import number, text
from testing.http_peers import Server, wait_until

FILES, FILES_LONG = 60, 3000
HANDLE = "0" * 32
HEADER = 8  # bytes of its length
TOKENS = 6
INVALID_ARGUMENT, FAILED_PRECONDITION = 3, 9


class Client:
    """One connection, which must outlive all that is refused over it."""

    def __init__(self, server):
        self.server = server
        self.http = http.client.HTTPConnection(*server.http, timeout=60)
        self.http.connect()
        self.socket = self.http.sock

    def ask(self, method, path, body=b""):
        self.http.request(method, path, body)
        answer = self.http.getresponse()
        found = answer.status, answer.read()
        assert self.http.sock is self.socket, "the connection was closed"
        return found

    def complete(self, **fields):
        body = {"model": "h3-demo", "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True, **fields}
        status, answer = self.ask("POST", "/v1/completions", json.dumps(body))
        return status, json.loads(answer)

    def generate(self, file):
        """The status of gRPC."""
        request = text(1, "h3-demo") + number(4, TOKENS) + number(11, 1) + text(20, file)
        return grpc_messages.call(self.server, grpc_messages.GENERATE, request)[0]


def damaged(rng, file, other):
    """A name of what was done to `file`, and the result."""
    end = HEADER + int.from_bytes(file[:HEADER], "little")
    kind = rng.choice(("bits in the header", "bits", "cut", "longer", "part of another state", "digits"))
    changed = bytearray(file)
    if kind in ("bits in the header", "bits"):
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(end if kind == "bits in the header" else len(file))
            changed[at] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del changed[rng.choice((rng.randrange(end), rng.randrange(len(file)))):]
    elif kind == "longer":
        changed += bytes(rng.choice((1, 8, 4096)))
    elif kind == "part of another state":
        size = min(len(file), len(other))
        first = rng.randrange(size)
        last = rng.randrange(first, size)
        changed[first:last] = other[first:last]
    else:  # another size, offset, shape, position or checksum
        at = rng.choice([i for i in range(HEADER, end) if file[i:i + 1].isdigit()])
        changed[at] = rng.choice(b"0123456789")
    return kind, bytes(changed)


def main():
    arguments = http_peers.arguments()
    rng = random.Random(5)
    seen = collections.defaultdict(collections.Counter)
    with Server(arguments.hippodrome, arguments.models) as server:
        client = Client(server)
        answer = client.complete(prompt="It was a dark night, and", return_state="inline")[1]
        other = client.complete(prompt="The end of the sea", return_state="inline")[1]
        file, other = (base64.b64decode(found["state"]["data"]) for found in (answer, other))
        expected = client.complete(state=answer["state"]["data"])[1]["choices"][0]["token_ids"]
        assert client.ask("PUT", "/v1/states/" + HANDLE, file)[0] == 200
        base = server.at_rest()
        for i in range(FILES_LONG if arguments.long else FILES):
            kind, data = damaged(rng, file, other)
            put = client.ask("PUT", "/v1/states/" + HANDLE, data)[0]
            status, answer = client.complete(state=base64.b64encode(data).decode() or "AAAA")
            assert put in (200, 400, 409) and status in (200, 400, 409), (kind, put, status)
            # What is taken as a state is the same one.
            if status == 200:
                assert answer["choices"][0]["token_ids"] == expected, kind
            assert (put == 200) == (status == 200), (kind, put, status)
            if i % 10 == 0:
                code = client.generate(data)
                assert code in ((0,) if status == 200 else (INVALID_ARGUMENT, FAILED_PRECONDITION)), (kind, code)
            kept = client.ask("GET", "/v1/states/" + HANDLE)
            assert kept == (200, data if put == 200 else file), kind
            if put == 200 and data != file:
                assert client.ask("PUT", "/v1/states/" + HANDLE, file)[0] == 200
            seen[kind][str(status)] += 1
        assert wait_until(lambda: server.load() == base), (server.load(), base)
        assert server.get("/ready")[0] == 200
        code = server.stop()
        assert code == 0, (code, server.said())
    report = {kind: dict(found) for kind, found in sorted(seen.items())}
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
