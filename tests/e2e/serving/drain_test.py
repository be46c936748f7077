"""How the real program stops: readiness first, refusals then, and no stream is cut that ends in time.

  drain_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

The short form takes seconds and is a test; --long drains ten times, with longer streams.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.grpc_messages import generate as grpc_generate, generate_message
from testing import http_peers
from testing.http_peers import Server, generate, seconds, wait_until

STREAMS = 64
ADMIN = ("--admin", "127.0.0.1:0")


def begin(server, tokens, count=1):
    """Clients whose streams all run."""
    clients = [server.connect() for _ in range(count)]
    for client in clients:
        client.sendall(generate("a", tokens, stream=True))
    assert wait_until(lambda: server.running() == count), server.metrics()
    return clients


def ended_well(text, tokens):
    """A stream of `tokens` events that says why it ended and that it did."""
    return (text.count('"finish_reason":"length"') == 1 and "data: [DONE]" in text
            and '"error"' not in text and text.count('"choices"') >= tokens)


def takes_connections(where):
    try:
        with socket.create_connection(where, 10):
            return True
    except ConnectionRefusedError:
        return False


def until_not_ready(server):
    """Milliseconds from a signal to the answer that says so."""
    begin = time.monotonic()
    server.signal()
    assert wait_until(lambda: server.get("/ready", server.admin)[0] == 503)
    return round(1000 * (time.monotonic() - begin), 1)


def streams_end(hippodrome, models, tokens):
    """Streams that run when the signal comes get to their ends; newcomers are told to try again."""
    with Server(hippodrome, models, *ADMIN, "--grace-seconds", "300") as server, \
            concurrent.futures.ThreadPoolExecutor(STREAMS // 2) as pool:
        message = generate_message("a", tokens)
        alone = grpc_generate(server, message)
        clients = begin(server, tokens, STREAMS // 2)
        calls = [pool.submit(grpc_generate, server, message) for _ in range(STREAMS // 2)]
        assert wait_until(lambda: server.running() == STREAMS), server.metrics()
        not_ready = until_not_ready(server)
        live = int(server.running())
        status, text = 0, ""

        def refused():
            nonlocal status, text
            status, text = server.send(generate("a", 1))
            return status == 503

        assert wait_until(refused), text
        assert "\r\nRetry-After: 1\r\n" in text, text
        assert server.get("/health")[0] == 200
        assert wait_until(lambda: not takes_connections(server.address("grpc")))
        texts = [client.rest() for client in clients]
        truncated = sum(not ended_well(text, tokens) for text in texts)
        # A call that does not end with OK raises.
        truncated += sum(call.result() != alone for call in calls)
        code = server.ended()
        assert truncated == 0, (truncated, texts[0][-500:])
        assert code == 0, (code, server.said())
    return {"http_streams": len(clients), "grpc_streams": len(calls), "tokens": tokens, "live_when_not_ready": live,
            "not_ready_ms": not_ready, "truncated": truncated, "exit_status": code}


def drain_delay(hippodrome, models):
    """Not ready, requests are still taken; a second signal ends the waiting, and what it cuts is said."""
    with Server(hippodrome, models, *ADMIN, "--drain-delay", "300", "--grace-seconds", "300") as server:
        client = begin(server, 100000)[0]
        # Whoever does not read is given up, and so would leave nothing to cut.
        reader = threading.Thread(target=client.rest)
        reader.start()
        not_ready = until_not_ready(server)
        status, text = server.send(generate("a", 1))
        assert status == 200, text
        took, code = seconds(server.stop)
        reader.join()
        # The answer before may still count.
        assert code == 1 and re.search("[12] requests were still running", server.said()), (code, server.said())
    return {"not_ready_ms": not_ready, "after_second_signal_s": round(took, 2), "exit_status": code}


def grace_ends(hippodrome, models):
    """What the grace period cuts is said, and is the exit status."""
    with Server(hippodrome, models, "--grace-seconds", "0") as server:
        client = begin(server, 100000)[0]
        reader = threading.Thread(target=client.rest)
        reader.start()
        took, code = seconds(server.stop)
        reader.join()
        assert code == 1 and "1 requests were still running" in server.said(), (code, server.said())
    return {"seconds": round(took, 2), "exit_status": code}


def idle(hippodrome, models):
    """Connections without requests keep nobody."""
    with Server(hippodrome, models, "--grace-seconds", "300") as server:
        clients = [server.connect() for _ in range(50)]
        for client in clients[::2]:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
            assert client.answer()[0] == 200
        took, code = seconds(server.stop)
        assert code == 0, (code, server.said())
        assert took < 100, f"an idle server took {took:.0f} s to stop"
        for client in clients:
            client.close()
    return {"connections": 50, "seconds": round(took, 2), "exit_status": code}


def main():
    arguments = http_peers.arguments()
    program = (arguments.hippodrome, arguments.models)
    found = []

    def run(check, *more):
        found.append({"check": check.__name__, **check(*program, *more)})
        print(json.dumps(found[-1]), flush=True)

    for _ in range(10 if arguments.long else 1):
        run(streams_end, 1000 if arguments.long else 400)
    run(drain_delay)
    run(grace_ends)
    run(idle)
    http_peers.write_report(arguments.json, {"cores": os.cpu_count(), "checks": found})
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
