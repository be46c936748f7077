"""The machine stops the server, for long or a thousand times a second, while streams are live.

  stops_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

Stopping and going on interrupts the system calls in which threads wait, as signals do (EINTR). The short
form stops for 2 s once; --long for 30 s.
"""

import concurrent.futures
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.grpc_messages import generate, generate_message
from testing import http_peers
from testing.http_peers import Server, generate as http_generate, wait_until

STREAMS = 16


def over_http(server, tokens):
    with server.connect(120) as client:
        client.sendall(http_generate("The end of the sea", tokens, True))
        events = client.answer()[1].split("data: {")[1:]
    return "".join(json.loads("{" + e.split("\n", 1)[0])["choices"][0]["text"] for e in events)


def over_grpc(server, tokens):
    return generate(server, generate_message("The end of the sea", tokens, 1))


def live_streams(server, tokens, disturb):
    """How many of the streams that are live while `disturb()` runs end otherwise than alone."""
    asks = [over_http, over_grpc]
    alone = [ask(server, tokens) for ask in asks]
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        answers = [pool.submit(asks[i % 2], server, tokens) for i in range(STREAMS)]
        assert wait_until(lambda: server.running() > 0)
        disturb()
        return sum(answer.result() != alone[i % 2] for i, answer in enumerate(answers))


def stop_for(server, seconds):
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    server.process.send_signal(signal.SIGCONT)


def storm(server, seconds):
    """Two signals each millisecond."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        server.process.send_signal(signal.SIGSTOP)
        server.process.send_signal(signal.SIGCONT)
        count += 2
        time.sleep(0.001)
    return count


def main():
    arguments = http_peers.arguments()
    stop, storms = (30, 20) if arguments.long else (2, 1)
    with Server(arguments.hippodrome, arguments.models) as server:
        base = server.load()
        differ = live_streams(server, 400, lambda: stop_for(server, stop))
        assert differ == 0, f"{differ} of {STREAMS} streams differ after a stop of {stop} s"
        assert wait_until(lambda: server.get("/ready")[0] == 200)
        sent = []
        also = live_streams(server, 400, lambda: sent.append(storm(server, storms)))
        assert also == 0, f"{also} of {STREAMS} streams differ after {sent} signals"
        assert wait_until(lambda: server.load() == base), server.load()
        code = server.stop()
        assert code == 0, (code, server.said())
    report = {"streams": STREAMS, "stopped_seconds": stop, "differ_after_the_stop": differ,
              "signals": sent[0], "signals_in_seconds": storms, "differ_after_the_signals": also}
    print(json.dumps(report, indent=1))
    http_peers.write_report(arguments.json, report)


if __name__ == "__main__":
    sys.exit(main())
