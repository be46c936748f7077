"""A stream that goes on and on, of a model without attention: memory stays what it is.

  endless_test.py HIPPODROME MODELS_DIR [--sanitized] [--long] [--json FILE]

--long streams a million tokens, and its report has how fast the first and the last ones came.
"""

import http.client
import json
import os
import statistics
import tempfile
import time

from testing import decoder_models
from testing.hostile_peers import Hippodrome
from testing.http_peers import MIB, arguments, write_report

SHORT, LONG = 20_000, 1_000_000  # tokens
BODY = {"prompt": "It was", "temperature": 0, "ignore_eos": True, "stream": True,
        "stream_options": {"include_usage": True}}
TURNS = 100  # in which it is looked at


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


def main():
    given = arguments("--sanitized")
    tokens = LONG if given.long else SHORT
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        model = decoder_models.without_attention(given.hippodrome, given.models, os.path.join(folder, "made"))
        server = Hippodrome(given.hippodrome, model, os.path.join(folder, "log"))
        try:
            stream(server, SHORT // 10)  # what a first stream allocates stays
            report = describe(*stream(server, tokens))
        finally:
            server.stop()
    print(json.dumps(report, indent=1))
    write_report(given.json, report)
    assert report["tokens"] == tokens, report
    resident = report["resident_mib"]
    assert given.sanitized or resident["most"] - 1 <= resident["median"] <= resident["least"] + 1, resident


if __name__ == "__main__":
    main()
