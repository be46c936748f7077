"""Streams that go on and on, of a model without attention and of a hybrid with a window: memory
stays what it is.

  endless_test.py HIPPODROME MODELS_DIR [--sanitized] [--long] [--json FILE]

--long streams a million tokens of each, and its report has how fast the first and the last ones came.
"""

import base64
import http.client
import json
import os
import pathlib
import subprocess
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import decoder_models
from testing.hostile_peers import Hippodrome
from testing.http_peers import MIB, arguments, write_report

SHORT, LONG = 20_000, 1_000_000  # tokens
BODY = {"prompt": "It was", "temperature": 0, "ignore_eos": True, "stream": True,
        "stream_options": {"include_usage": True}}
TURNS = 100  # in which it is looked at
# Pages for fewer tokens than even the short stream of a hybrid has.
WINDOW, KEY_VALUE_BYTES, HYBRID = 256, 2 << 20, 4_000


def stream(server, tokens):
    """Events so far, when, and resident bytes at each hundredth; and the tokens in all."""
    client = http.client.HTTPConnection(server.http, timeout=60)
    client.request("POST", "/v1/completions", json.dumps({**BODY, "max_tokens": tokens}),
                   {"Content-Type": "application/json"})
    marks, count, usage, done = [], 0, None, False
    for line in client.getresponse():
        if not line.startswith(b"data: "):
            continue
        if line.startswith(b"data: [DONE]"):
            done = True
        elif b'"usage":{' in line:
            usage = json.loads(line[6:])["usage"]
        else:
            count += 1
            if count % (tokens // TURNS) == 0:
                marks.append((count, time.monotonic(), server.resident()))
    client.close()
    assert done, f"the stream was cut after {count} events"
    return marks, usage["completion_tokens"]


def describe(marks, tokens):
    resident = [mark[2] for mark in marks]
    found = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(marks, marks[1:])]
    return {"tokens": tokens,
            "resident_mib": {name: round(of(resident) / MIB, 2)
                             for name, of in (("least", min), ("median", statistics.median), ("most", max))},
            "per_second": {"first_tenth": round(statistics.median(found[:10])),
                           "all": round(statistics.median(found)),
                           "last_tenth": round(statistics.median(found[-10:]))}}


def check(report, tokens, sanitized):
    assert report["tokens"] == tokens, report
    resident = report["resident_mib"]
    assert sanitized or resident["most"] - 1 <= resident["median"] <= resident["least"] + 1, resident


def ask(server, method, path, body=None):
    client = http.client.HTTPConnection(server.http, timeout=60)
    client.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer = client.getresponse()
    found = answer.status, json.loads(answer.read())
    client.close()
    return found


def without_attention(given, folder, tokens):
    model = decoder_models.without_attention(given.hippodrome, given.models, os.path.join(folder, "made"))
    refused = subprocess.run([given.hippodrome, "serve", "--model", model, "--device", "cpu", "--attention-window",
                              str(WINDOW)], capture_output=True, text=True)
    assert refused.returncode == 1 and "no attention layers" in refused.stderr, refused
    server = Hippodrome(given.hippodrome, model, os.path.join(folder, "log"))
    try:
        stream(server, SHORT // 10)  # what a first stream allocates stays
        return describe(*stream(server, tokens))
    finally:
        server.stop()


def hybrid(given, folder, tokens):
    model = os.path.join(given.models, "h3-demo")
    log = os.path.join(folder, "hybrid.log")
    server = Hippodrome(given.hippodrome, model, log, "--kv-bytes", str(KEY_VALUE_BYTES))
    try:
        code, refused = ask(server, "POST", "/v1/completions", {**BODY, "stream": False, "max_tokens": tokens})
        assert code == 400 and "key/value pages" in refused["error"]["message"], refused
        assert "attention_window" not in ask(server, "GET", "/v1/models/m")[1]
    finally:
        server.stop()
    server = Hippodrome(given.hippodrome, model, log, "--kv-bytes", str(KEY_VALUE_BYTES), "--attention-window", str(WINDOW))
    try:
        assert ask(server, "GET", "/v1/models/m")[1]["attention_window"] == WINDOW
        assert '"attention_window":%d' % WINDOW in server.said(), server.said()
        stream(server, HYBRID // 4)
        report = describe(*stream(server, tokens))
        # What is said of a state tells that it is an approximation.
        _, answer = ask(server, "POST", "/v1/completions",
                        {**BODY, "stream": False, "stream_options": None, "max_tokens": 600, "return_state": "inline"})
        assert b'window %d"' % WINDOW in base64.b64decode(answer["state"]["data"])[:8192], answer["state"]["position"]
        return report
    finally:
        server.stop()


def main():
    given = arguments("--sanitized")
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        reports = {}
        for kind, short in ((without_attention, SHORT), (hybrid, HYBRID)):
            tokens = LONG if given.long else short
            reports[kind.__name__] = kind(given, folder, tokens)
            print(json.dumps({kind.__name__: reports[kind.__name__]}, indent=1))
            write_report(given.json, reports)
            check(reports[kind.__name__], tokens, given.sanitized)


if __name__ == "__main__":
    main()
