"""What /metrics of the real program shows: the families that docs/serving.md has and no others, as promtool wants
them, with the buckets that were asked for; and counters that never fall.

  metrics_test.py HIPPODROME MODELS_DIR PROMTOOL

The exit status is 77 if there is no PROMTOOL, after all else was checked.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.grpc_messages import EMBED, address_of, embed_message, generate, generate_message
from testing.http_peers import Server, generate as over_http, request, wait_until
from testing import raw_http2

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "serving.md")
BUCKETS = ("0.005", "0.1", "2.5")


def use(server):
    """A little of everything that has series of its own."""
    for stream in (False, True):
        assert server.send(over_http("a", 3, stream))[0] == 200
    assert server.send(request("/embed", b'{"inputs": "a word"}'))[0] == 200
    assert server.get("/nothing")[0] == 404
    generate(server, generate_message("a", 2, 1))
    with raw_http2.Connection(address_of(server)) as connection:
        assert connection.call(EMBED, embed_message(2)) == 0


def exposition(server):
    return server.get("/metrics", server.admin)[1].split("\r\n\r\n", 1)[1]


def types(text):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))


def counters(text):
    """Every value that may not fall, by its series."""
    kinds = types(text)
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        name = series.split("{")[0]
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        if kinds.get(name) == "counter" or kinds.get(family) == "histogram":
            values[series] = float(value)
    return values


def check_documented(text):
    with open(DOCS) as file:
        section = re.search(r"^## Metrics\n(.*?)^## ", file.read(), re.M | re.S)[1]
    named = set(re.findall(r"\b(?:hippodrome|process)_\w+", section))
    shown = set(types(text))
    assert named == shown, {"documented only": named - shown, "shown only": shown - named}


def check_buckets(text):
    seconds = [name for name, kind in types(text).items() if kind == "histogram" and name.endswith("_seconds")]
    assert len(seconds) > 8, seconds
    for name in seconds:
        bounds = re.findall(rf'^{name}_bucket{{.*le="([^"]*)"}}', text, re.M)
        assert set(bounds) == {*BUCKETS, "+Inf"}, (name, bounds)


def check_monotone(server, before):
    server.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: '"event":"reload"' in server.said()), server.said()
    use(server)
    after = counters(exposition(server))
    fell = {name: (value, after.get(name)) for name, value in before.items() if not after.get(name, -1) >= value}
    assert not fell, fell


def main():
    promtool = sys.argv[3] if len(sys.argv) > 3 else ""
    with Server(*sys.argv[1:3], "--admin", "127.0.0.1:0", "--latency-buckets", ",".join(BUCKETS)) as server:
        use(server)
        text = exposition(server)
        check_documented(text)
        check_buckets(text)
        check_monotone(server, counters(text))
        assert server.stop() == 0
    if not os.access(promtool, os.X_OK):
        print("no promtool: its check is skipped")
        return 77
    checked = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stdout + checked.stderr, checked
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
