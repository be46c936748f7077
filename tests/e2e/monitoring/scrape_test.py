"""What scraping costs: /metrics of the admin listener is asked for once and ten times a second while the decoder
takes in one long prompt, and the same prompt is timed without.

  scrape_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

The short form, a test, has a prompt of a second or so and asserts no times; --long has one of a minute.
"""

import json
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.http_peers import Server, arguments, percentile, request, seconds, write_report

HERTZ = (0, 1, 10)
ALONE = 500  # scrapes of an idle server, for the processor time of one


class Scraper(threading.Thread):
    """Asks for /metrics so often a second, on a new connection each time, until stop()."""

    def __init__(self, server, hertz):
        super().__init__()
        self.server, self.interval = server, 1 / hertz
        self.milliseconds, self.failed = [], 0
        self.ended = threading.Event()

    def run(self):
        next_time = time.monotonic()
        while not self.ended.wait(max(0, next_time - time.monotonic())):
            next_time += self.interval
            took, (status, text) = seconds(lambda: self.server.get("/metrics", self.server.admin))
            self.milliseconds.append(1000 * took)
            self.failed += status != 200 or "hippodrome_requests_running" not in text

    def stop(self):
        self.ended.set()
        self.join()


def take_in(server, tokens):
    """The seconds that the decoder needs for a prompt of some so many tokens, as its metrics say."""
    name = 'hippodrome_prefill_duration_seconds_sum{api="http",model="h3-demo"}'
    before = server.metrics()[name]
    # As text: JSON may not have so many numbers.
    body = json.dumps({"model": "h3-demo", "prompt": " night" * tokens, "max_tokens": 1})
    status, answer = server.send(request("/v1/completions", body.encode()), timeout=600)
    assert status == 200, answer
    return server.metrics()[name] - before


def measure(server, hertz, tokens):
    found = {"scrapes_per_second": hertz}
    if hertz == 0:
        found["prefill_s"] = round(take_in(server, tokens), 3)
        return found
    scraper = Scraper(server, hertz)
    scraper.start()
    found["prefill_s"] = round(take_in(server, tokens), 3)
    scraper.stop()
    times = sorted(scraper.milliseconds)
    assert times and scraper.failed == 0, (len(times), scraper.failed)
    return {**found, "scrapes": len(times), "p50_ms": round(percentile(times, 0.5), 2),
            "p99_ms": round(percentile(times, 0.99), 2), "slowest_ms": round(times[-1], 2)}


def processor_milliseconds(server):
    """Of one scrape."""
    before = server.processor_seconds()
    for _ in range(ALONE):
        server.get("/metrics", server.admin)
    return 1000 * (server.processor_seconds() - before) / ALONE


def main():
    options = arguments()
    tokens = 176000 if options.long else 2048
    with Server(options.hippodrome, options.models, "--admin", "127.0.0.1:0") as server:
        take_in(server, 1024)
        each = processor_milliseconds(server)
        rows = [measure(server, hertz, tokens) for hertz in HERTZ]
        report = {"prompt_tokens": tokens, "bytes": len(server.get("/metrics", server.admin)[1]),
                  "processor_ms_of_a_scrape": round(each, 3),
                  "percent_of_all_cores_at_10_a_second": round(each * 10 / 1000 * 100 / os.cpu_count(), 3),
                  "prefill": rows}
        assert server.stop() == 0
    print(json.dumps(report, indent=1))
    write_report(options.json, report)


if __name__ == "__main__":
    sys.exit(main())
