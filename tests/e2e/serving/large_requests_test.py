"""Requests that reserve nearly everything, or more than there is, beside small ones.

  large_requests_test.py HIPPODROME MODELS_DIR [--report]

--report measures instead of asserting, so that older programs can be compared.
"""

import argparse
import contextlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import raw_http2
from testing.grpc_messages import GENERATE, address_of, generate_message, open_call
from testing.http_peers import Server, completion, request, seconds, wait_until

ROOM = ["--kv-bytes", str(512 << 20)]
LARGE = 300000  # new tokens: the pages of one such request are more than half of all
IMPOSSIBLE = 1 << 20


def small(server):
    """The status, or 0 after five seconds without an answer."""
    return server.send(request("/v1/completions", completion("a", 4)), timeout=5)[0]


def large_ones_beside_small_ones(server):
    """Three that are large: one runs, the others wait. Small ones pass them."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(3)]
        for client in clients:
            client.sendall(request("/v1/completions", completion("a", LARGE, stream=True)))
        assert wait_until(lambda: server.running() >= 1)
        took, status = zip(*(seconds(lambda: small(server)) for _ in range(8)))
        free = server.metrics()['hippodrome_state_slots{model="h3-demo",state="free"}']
    assert wait_until(lambda: server.running() == 0)
    return {"small_ones_served": sum(s == 200 for s in status), "of": len(status),
            "slowest_s": round(max(took), 3), "slots_free_meanwhile": free}


def refused_over_http(server):
    took, (status, text) = seconds(lambda: server.send(
        request("/v1/completions", completion("a", IMPOSSIBLE)), timeout=5))
    return {"status": status, "seconds": round(took, 4), "says": text.rsplit("\r\n\r\n", 1)[-1]}


def refused_over_grpc(server):
    with raw_http2.Connection(address_of(server), 5) as connection:
        open_call(connection, GENERATE, generate_message("a", IMPOSSIBLE))
        for kind, flags, _, payload in connection.frames():
            if kind == raw_http2.HEADERS and flags & raw_http2.END_STREAM:
                return payload.decode("latin1")
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    with Server(arguments.hippodrome, arguments.models, *ROOM) as server:
        http, grpc = refused_over_http(server), refused_over_grpc(server)
        beside = large_ones_beside_small_ones(server)
        server.stop()
    print(json.dumps({"impossible": {"http": http, "grpc": grpc}, "large": beside}, indent=1))
    if arguments.report:
        return
    message = json.loads(http["says"])["error"]["message"]
    assert http["status"] == 400 and "needs" in message and "pages" in message, http
    assert "needs" in grpc and "pages" in grpc and "grpc-status\x0211" in grpc, grpc
    assert beside["small_ones_served"] == beside["of"], beside


if __name__ == "__main__":
    sys.exit(main())
