"""What /metrics of the real program counts of requests that were not answered as their clients wished: each
series is there from the start, and each refusal is counted once and says when to try again.

  counters_http_test.py HIPPODROME MODELS_DIR
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.http_peers import HEAD, MIB, Server, generate, wait_until

ORIGIN = "https://page.example"
REASONS = ("queue_full", "client_share", "never_fits", "max_wait", "deadline", "stopping")
CANCELLED = [f'hippodrome_cancelled_total{{model="h3-demo",where="{where}"}}'
             for where in ("queue", "prefill", "decode")]


def refused(code):
    return f'hippodrome_requests_total{{api="http",code="{code}",model="",route="none"}}'


def rejected(reason, model="h3-demo"):
    return f'hippodrome_admission_rejected_total{{model="{model}",reason="{reason}"}}'


def announced():
    names = [refused(code) for code in (400, 408, 413, 414, 415, 417, 431, 499, 503, 505)]
    for model in ("h3-demo", "bigs-demo"):
        names += [rejected(reason, model) for reason in REASONS]
    names += CANCELLED
    names += [f'hippodrome_request_failures_total{{reason="{reason}"}}'
              for reason in ("overloaded", "validation", "deadline", "cancelled", "internal")]
    for listener in ("main", "admin"):
        label = f'{{listener="{listener}"'
        names += [f'hippodrome_http_connections_refused_total{label},reason="{reason}"}}'
                  for reason in ("full", "address")]
        names += [f"hippodrome_http_connections_{what}_total{label}}}"
                  for what in ("evicted", "timed_out")]
        names += [f"hippodrome_http_body_bytes{label}}}"]
    return names + ["hippodrome_requests_cut_total"]


def check_start(server):
    metrics = server.metrics()
    wrong = [name for name in announced() if metrics.get(name) != 0]
    assert not wrong, f"not there, or not 0, at the start: {wrong}"


def check_refusals(server):
    """Those that no route sees, each with the headers that a page needs to read it."""
    post = HEAD.format("/v1/completions") + f"Origin: {ORIGIN}\r\n"
    rows = [(400, post + "Content-Length: -1\r\n\r\n"),
            (400, post + "Transfer-Encoding: xchunked\r\n\r\n"),
            (413, post + f"Content-Length: {64 * MIB + 1}\r\n\r\n"),  # a state may be large
            (415, post + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"),
            (417, post + "Expect: more\r\nContent-Length: 1\r\n\r\nx"),
            (431, post + "X: " + "x" * 20000)]
    expected = {}
    for code, text in rows:
        status, answer = server.send(text.encode())
        assert status == code, (code, answer)
        assert f"\r\nAccess-Control-Allow-Origin: {ORIGIN}\r\n" in answer, answer
        expected[code] = expected.get(code, 0) + 1
    for code, text in ((414, "GET /" + "x" * 9000 + " HTTP/1.1\r\nHost: h\r\n\r\n"),
                       (505, "GET / HTTP/3.0\r\nHost: h\r\n\r\n")):
        status, answer = server.send(text.encode())
        assert status == code, (code, answer)
        expected[code] = 1
    metrics = server.metrics()
    counted = {code: metrics[refused(code)] for code in expected}
    assert counted == expected, counted


def check_admission(server):
    """One request runs, one waits until it has waited for too long, one finds no place, one never fits."""
    running = server.connect()
    running.sendall(generate("a", 500000, stream=True))
    reader = threading.Thread(target=running.rest)
    reader.start()
    assert wait_until(lambda: server.running() == 1)
    waiting = server.connect()
    waiting.sendall(generate("b", 1))
    queued = 'hippodrome_requests_queued{model="h3-demo"}'
    assert wait_until(lambda: server.metrics()[queued] == 1)
    refusals = [server.send(generate("c", 1)), waiting.answer()]
    for status, text in refusals:
        assert status == 429 and "\r\nRetry-After: 1\r\n" in text, text
    status, text = server.send(generate("d", 1 << 20))
    assert status == 400, text
    metrics = server.metrics()
    counted = {reason: metrics[rejected(reason)] for reason in REASONS}
    assert counted == {"queue_full": 1, "client_share": 0, "never_fits": 1, "max_wait": 1, "deadline": 0,
                       "stopping": 0}, counted
    # Who was turned away has not given up; who leaves has.
    assert sum(metrics[name] for name in CANCELLED) == 0, metrics
    running.shutdown(2)
    reader.join()
    assert wait_until(lambda: sum(server.metrics()[name] for name in CANCELLED) == 1)
    assert wait_until(lambda: server.running() == 0 and server.metrics()[queued] == 0)


def main():
    with Server(*sys.argv[1:3], "--admin", "127.0.0.1:0", "--cors-origin", ORIGIN,
                "--max-sequences", "1", "--max-queue", "1", "--max-wait", "4",
                "--kv-bytes", str(1 << 30)) as server:
        check_start(server)
        check_refusals(server)
        check_admission(server)
        code = server.stop()
        assert code == 0, (code, server.said())
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
