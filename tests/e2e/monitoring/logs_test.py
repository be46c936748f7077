"""The logs of the real program: a line of JSON for each call, with the ids that the client sent or got; SIGHUP
opens moved files anew and takes a changed configuration over; and nothing that clients wrote gets in.

  logs_test.py HIPPODROME MODELS_DIR
"""

import json
import os
import pathlib
import re
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.grpc_messages import (EMBED, GENERATE, SCORE, address_of, embed_message, generate, generate_message,
                           score_message, text)
from testing.http_peers import Connection, Server, completion, request, wait_until
from testing import raw_http2

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
# What a client may write somewhere, each to be found nowhere; its address is one.
CLIENT = "127.0.0.77"
SECRET = {"prompt": "Qwertzuiop", "key": "sk-asdfghjkl", "model": "yxcvbnm-model", "path": "plokmijn",
          "query": "uhbzgvtf", "field": "crdxesyw", "id": "aqswdefr", "metadata": "gthzjukilo"}
INJECTED = '\x1b[31mred\r\n{"ts":"forged"}'
SAID = re.compile(r"loading \S+ from |\S+ runs on |(http|grpc|admin) listening on |stopping$")


class Files:
    def __init__(self, folder):
        self.config, self.access = folder + "/config.json", folder + "/access.log"

    def configure(self, **members):
        with open(self.config, "w") as file:
            json.dump({"access-log": self.access, "log-level": "debug", **members}, file)

    def lines(self, path=None):
        with open(path or self.access) as file:
            return [json.loads(line) for line in file]


def events(server):
    """What the program logged, of which every line must be JSON or one that it says at its start and end."""
    found = []
    for line in server.said().splitlines():
        if not SAID.match(line):
            found.append(json.loads(line))
    return found


def header(answer, name):
    return re.search(rf"\r\n{name}: (.*)\r\n", answer)[1]


def ask(server, data):
    with Connection(server.http, source=CLIENT) as client:
        client.sendall(data)
        return client.answer()


def check_lines(server, files):
    status, answer = ask(server, request("/v1/completions", completion("a", 3),
                                         f"x-request-id: mine.1\r\ntraceparent: {TRACEPARENT}\r\n"))
    assert status == 200, answer
    assert header(answer, "x-request-id") == "mine.1"
    parent = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", header(answer, "traceparent"))
    assert parent and parent[1] != "00f067aa0ba902b7", answer
    assert wait_until(lambda: any(line["request_id"] == "mine.1" for line in files.lines()))
    line, = [line for line in files.lines() if line["request_id"] == "mine.1"]
    body = answer.split("\r\n\r\n", 1)[1]
    expected = {"event": "access", "api": "http", "method": "POST", "route": "/v1/completions", "code": "200",
                "model": "h3-demo", "prompt_tokens": 1, "generated_tokens": 3, "bytes_out": len(body.encode()),
                "bytes_in": len(completion("a", 3)), "trace_id": TRACE, "span_id": parent[1]}
    assert {name: line.get(name) for name in expected} == expected, line
    assert 0 < line["first_byte_s"] <= line["duration_s"], line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["ts"]), line


def check_refusals(server, files):
    """Those that reach no route, and clients that leave."""
    before = len(files.lines())
    made = []
    for data, code, route in ((b"GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n", 404, "other"),
                              (b"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505, "none"),
                              (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414, "none")):
        status, answer = ask(server, data)
        assert status == code, answer
        made.append((header(answer, "x-request-id"), str(code), route))
    with Connection(server.http) as client:
        client.sendall(request("/v1/completions", completion("a", 100000, True), "x-request-id: gone\r\n"))
        client.recv(1)
    made.append(("gone", "499", "/v1/completions"))
    assert wait_until(lambda: len(files.lines()) == before + len(made)), files.lines()[before:]
    found = [(line["request_id"], line["code"], line["route"]) for line in files.lines()[before:]]
    assert sorted(found) == sorted(made), found


def check_grpc(server, files):
    before = len(files.lines())
    generate(server, generate_message("a", 2))
    calls = [(EMBED, embed_message(1)), (SCORE, score_message("a", 1)), ("/hippodrome.v1.Generation/No", b""),
             (EMBED, b"")]
    for path, message in calls:
        with raw_http2.Connection(address_of(server)) as connection:
            connection.call(path, message, **{"x-request-id": "grpc-1", "traceparent": TRACEPARENT})
    assert wait_until(lambda: len(files.lines()) == before + len(calls) + 1), files.lines()[before:]
    # A call ends a moment after its client knows.
    lines = {(line["route"], line["code"]): line for line in files.lines()[before:]}
    assert set(lines) == {("Generate", "ok"), ("Embed", "ok"), ("Score", "ok"), ("other", "unimplemented"),
                          ("Embed", "invalid_argument")}, lines
    assert all(line["api"] == "grpc" for line in lines.values())
    assert lines.pop(("Generate", "ok"))["generated_tokens"] == 2
    assert all((line["request_id"], line["trace_id"]) == ("grpc-1", TRACE) for line in lines.values()), lines


def hangup(server, event):
    """Sends SIGHUP and waits for what comes of it."""
    count = sum(line["event"] == event for line in events(server))
    server.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: sum(line["event"] == event for line in events(server)) > count), server.said()
    return [line for line in events(server) if line["event"] == event][-1]


def check_reload(server, files):
    os.rename(files.access, files.access + ".1")
    hangup(server, "reload")
    server.get("/health")
    assert wait_until(lambda: os.path.exists(files.access) and files.lines()), "not opened anew"
    with open(files.config, "w") as file:
        file.write('{"log-level": "loud"}')
    why = hangup(server, "reload_failed")["message"]
    assert files.config in why and '"log-level"' in why and "'loud'" in why, why
    files.configure(**{"max-queue": 5})
    hangup(server, "reload")
    assert wait_until(lambda: any("max-queue" in line.get("message", "") for line in events(server)
                                  if line["event"] == "restart_needed")), server.said()
    files.configure()
    hangup(server, "reload")


def routes(server):
    _, answer = server.get("/openapi.json")
    for path, methods in json.loads(answer.split("\r\n\r\n", 1)[1])["paths"].items():
        for method in methods:
            yield method.upper(), path


def hostile_requests(server):
    """Every route, with something in each place that a client may write to."""
    bodies = [{"model": SECRET["model"], "prompt": SECRET["prompt"], "inputs": SECRET["prompt"]},
              {"prompt": SECRET["prompt"], "max_tokens": 2}, {"inputs": SECRET["prompt"] + " [MASK]"},
              {"inputs": {"question": SECRET["prompt"], "context": SECRET["prompt"]}},
              {"input": SECRET["prompt"]}, {"tokens": [1]}, {SECRET["field"] + INJECTED: 1}]
    fields = (f"Authorization: Bearer {SECRET['key']}\r\nx-request-id: {SECRET['id']} \x1b[31m\r\n"
              f"traceparent: {SECRET['id']}\r\nOrigin: http://{SECRET['id']}\r\n"
              f"Cookie: {SECRET['key']}\r\nX-{SECRET['field']}: {SECRET['id']}\r\n").replace("\x1b", "\t")
    for method, path in routes(server):
        where = re.sub(r"\{\w+\}", SECRET["model"], path) + "?" + SECRET["query"]
        for body in bodies if method == "POST" else [None]:
            data = b"" if body is None else json.dumps(body).encode()
            yield (f"{method} {where} HTTP/1.1\r\nHost: {SECRET['path']}\r\n{fields}"
                   f"Content-Length: {len(data)}\r\n\r\n").encode() + data
    escaped = "%1b%5b31m%0d%0a" + SECRET["path"]
    yield f"GET /{escaped} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    yield f"GET /v1/models/{escaped} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    yield f"{SECRET['path']} /health HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    yield f"GET /{INJECTED} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    yield f"GET /health HTTP/1.1\r\nHost: h\r\nx-request-id: {INJECTED}\r\n\r\n".encode()
    yield f"GET /health HTTP/1.1\r\nHost: h\r\n{INJECTED}: 1\r\n\r\n".encode()
    yield (b"GET /health HTTP/1.1\r\nHost: h\r\nx-request-id: " + SECRET["id"].encode() + b"\x00\xff\x1b\r\n\r\n")


def hostile_calls(server):
    metadata = {"authorization": "Bearer " + SECRET["key"], "x-request-id": SECRET["id"] + " \t",
                "traceparent": SECRET["id"], "x-" + SECRET["metadata"]: SECRET["metadata"]}
    for path, message in ((GENERATE, text(1, SECRET["model"]) + text(2, SECRET["prompt"])),
                          (GENERATE, generate_message(SECRET["prompt"], 2)), (EMBED, embed_message(1)),
                          (EMBED, text(1, SECRET["model"] + INJECTED) + text(2, text(1, SECRET["prompt"]))),
                          ("/" + SECRET["path"] + "/" + SECRET["path"], b""),
                          ("/grpc.health.v1.Health/Check", text(1, SECRET["model"] + INJECTED))):
        for more in (metadata, {**metadata, "x-hostile": INJECTED}):
            with raw_http2.Connection(address_of(server), source=CLIENT) as connection:
                connection.socket.settimeout(2)
                try:
                    connection.call(path, message, **more)
                except OSError:
                    pass  # gRPC may answer what no header may have with silence


def check_hygiene(server, files):
    for data in hostile_requests(server):
        ask(server, data)
    hostile_calls(server)
    written = {"said": server.said(), "metrics": server.get("/metrics")[1]}
    for path in (files.access, files.access + ".1"):
        with open(path) as file:
            written[path] = file.read()
    for place, content in written.items():
        for name, secret in [*SECRET.items(), ("address", CLIENT), ("forged", "forged"), ("escape", "\x1b")]:
            assert secret not in content, (place, name, content[max(0, content.find(secret) - 300):][:700])
    assert all(line["event"] == "access" for line in files.lines() + files.lines(files.access + ".1"))
    assert len(files.lines()) > 100
    events(server)


def main():
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        check(Files(folder))
    print("passed")


def check(files):
    files.configure()
    with Server(*sys.argv[1:3], "--config", files.config) as server:
        check_lines(server, files)
        check_refusals(server, files)
        check_grpc(server, files)
        check_reload(server, files)
        check_hygiene(server, files)
        assert server.metrics()["hippodrome_log_dropped_total"] == 0
        code = server.stop()
        assert code == 0, (code, server.said())
        said = [line["event"] for line in events(server)]
        assert said[0] == "starting" and said[-3:] == ["stopping", "not_ready", "stopped"], said
        assert said.count("ready") == 1 and said.count("model_loaded") == 2, said


if __name__ == "__main__":
    sys.exit(main())
