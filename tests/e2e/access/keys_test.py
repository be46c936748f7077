"""API keys: every route of HTTP and every method of gRPC, as the program itself tells them, with every kind
of key; and tricks to get around them.

  keys_test.py HIPPODROME MODELS_DIR

What a right key may do is what everybody may do on a server without keys, which runs beside: the same
request has the same status there.
"""

import collections
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import api_keys, grpc_messages, http_peers, raw_http2
from testing.http_peers import Connection, Server, completion, send

OPEN = {("GET", "/health"), ("GET", "/ready"), ("GET", "/")}
ADMIN_OPEN = {("GET", "/health"), ("GET", "/ready")}
HEALTH = "grpc.health.v1.Health"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
UNAUTHENTICATED, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 16, 7, 8, 12
RIGHT = ("user", "admin", "new")
# By kind, where a key is needed: the status, and that of gRPC; None: as without keys.
TABLE = {"none": (401, UNAUTHENTICATED), "empty": (401, UNAUTHENTICATED),
         "no secret": (401, UNAUTHENTICATED), "basic": (401, UNAUTHENTICATED),
         "wrong": (401, UNAUTHENTICATED), "cut short": (401, UNAUTHENTICATED),
         "other case": (401, UNAUTHENTICATED), "expired": (401, UNAUTHENTICATED),
         "used up": (429, RESOURCE_EXHAUSTED), **dict.fromkeys(RIGHT, (None, None))}
BODIES = {"/v1/completions": completion("It was", 2), "/generate": b'{"inputs": "It was"}',
          "/tokenize": b'{"prompt": "It was"}', "/embed": b'{"inputs": "a word"}',
          "/fill_mask": b'{"inputs": "a [MASK]"}'}

arguments = None


# ---- Callers


class Caller:
    """Asks `server` with the field, or the metadata, that a kind of key is sent as."""

    def __init__(self, server, values):
        self.server, self.values = server, values

    def use_up(self, kind):
        """The key may make one call in a minute."""
        if kind == "used up":
            self.ask("GET", "/v1/models", kind)

    def http(self, method, path, kind, *more, **how):
        self.use_up(kind)
        return self.ask(method, path, kind, *more, **how)

    def ask(self, method, path, kind, where=None, body=b"{}", fields=""):
        for value in self.values[kind]:
            fields += f"Authorization: {value}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
        if method == "HEAD":
            with Connection(where or self.server.http) as client:
                client.sendall(head.encode() + body)
                return int(client.recv(12)[9:])
        return send(where or self.server.http, head.encode() + body)[0]

    def grpc(self, path, kind, payload=b""):
        """The status, and the messages of the answer as one."""
        self.use_up(kind)
        with raw_http2.Connection(grpc_messages.address_of(self.server)) as connection:
            block = raw_http2.request_headers(path) + b"".join(
                raw_http2.literal("authorization", value) for value in self.values[kind])
            connection.send(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1, block))
            connection.stream = 3
            data = b""
            for frame, flags, stream, content in connection.sending(1, raw_http2.message(payload)):
                if stream != 1:
                    continue
                data += content if frame == raw_http2.DATA else b""
                # Who watches health is told of it until the end of time.
                if data and path.endswith("/Watch"):
                    return 0, data[5:]
                if frame == raw_http2.HEADERS and flags & raw_http2.END_STREAM:
                    _, _, value = content.partition(b"grpc-status")
                    return int(value[1:1 + value[0]]), data[5:]
        raise OSError("the call has no end")


def methods(caller):
    """Of all services that reflection lists: "/package.Service/Method"."""
    _, answer = caller.grpc(REFLECTION, "admin", grpc_messages.text(7, ""))
    found = []
    for service in grpc_messages.nested(answer, 6, 1, 1):
        _, answer = caller.grpc(REFLECTION, "admin", grpc_messages.text(4, service))
        for file in grpc_messages.nested(answer, 4, 1):
            package = b"".join(grpc_messages.nested(file, 2))
            for described in grpc_messages.nested(file, 6):
                name = package + b"." + next(grpc_messages.nested(described, 1))
                if name == service:
                    found += [f"/{name.decode()}/{method.decode()}"
                              for method in grpc_messages.nested(described, 2, 1)]
    return found


class KeysTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = contextlib.ExitStack()
        folder = cls.files.enter_context(tempfile.TemporaryDirectory())
        secrets, listed = {}, []
        for name, more in {"user": {}, "admin": {"admin": True}, "used": {
                "limits": {"requests_per_minute": 1, "burst": 1}}}.items():
            secrets[name], entry = api_keys.new(arguments.hippodrome, name, **more)
            listed.append(entry)
        # Two secrets of one key, one of which has expired.
        secrets["new"], entry = api_keys.new(arguments.hippodrome, "changed")
        secrets["old"], old = api_keys.new(arguments.hippodrome, "changed")
        entry["secrets"].append({**old["secrets"][0], "expires": "2026-01-01"})
        path = os.path.join(folder, "keys.json")
        api_keys.write(path, [*listed, entry])
        options = ("--admin", "127.0.0.1:0", "--cors-origin", "http://page.example")
        start = lambda *more, **how: cls.files.enter_context(
            Server(arguments.hippodrome, arguments.models, *options, *more, **how))
        keyed, free = start("--api-keys", path, key=secrets["admin"]), start()
        user = secrets["user"]
        values = {"none": [], "empty": [""], "no secret": ["Bearer"], "basic": [f"Basic {user}"],
                  "wrong": ["Bearer hk-wrong"], "cut short": [f"Bearer {user[:-1]}"],
                  "other case": [f"Bearer {user.swapcase()}"], "expired": [f"Bearer {secrets['old']}"],
                  "used up": [f"Bearer {secrets['used']}"], "user": [f"Bearer {user}"],
                  "admin": [f"bearer {secrets['admin']}"], "new": [f"BEARER  {secrets['new']}"],
                  "twice": [f"Bearer {user}"] * 2}
        cls.keyed, cls.free = Caller(keyed, values), Caller(free, values)
        cls.secrets = secrets

    @classmethod
    def tearDownClass(cls):
        cls.files.close()

    def metric(self, name):
        return self.keyed.server.metrics()[name]

    def routes(self):
        paths = json.loads(self.keyed.server.get("/openapi.json")[1].split("\r\n\r\n", 1)[1])["paths"]
        return [(method.upper(), path.replace("{id}", "h3-demo").replace("{model}", "h3-demo")
                 .replace("{version}", "1").replace("{handle}", "0" * 32)) for path, of in paths.items() for method in of]

    def test_every_route_with_every_kind_of_key(self):
        routes = self.routes()
        self.assertGreater(len(routes), 35)
        asked = 0
        for method, path in routes:
            body = BODIES.get(path, b"{}")
            alike = self.free.http(method, path, "none", body=body)
            for kind, (status, _) in TABLE.items():
                expected = alike if status is None or (method, path) in OPEN else status
                self.assertEqual(self.keyed.http(method, path, kind, body=body), expected,
                                 (method, path, kind))
                asked += 1
        self.assertEqual(asked, len(routes) * len(TABLE))

    def test_the_admin_listener_is_for_administrators(self):
        keyed, free = self.keyed.server.admin, self.free.server.admin
        for method, path in [*self.routes(), ("POST", "/v2/repository/index"), ("GET", "/nothing")]:
            alike = self.free.http(method, path, "none", free)
            for kind, (status, _) in TABLE.items():
                expected = status or (alike if kind == "admin" else 403)
                # That a key is no administrator's is told before what it has used up.
                expected = 403 if kind == "used up" else expected
                expected = alike if (method, path) in ADMIN_OPEN else expected
                if (method, path) == ("GET", "/"):
                    continue  # the page is open, and not there
                self.assertEqual(self.keyed.http(method, path, kind, keyed), expected,
                                 (method, path, kind))

    def test_every_method_with_every_kind_of_key(self):
        found = methods(self.keyed)
        self.assertGreater(len(found), 20)
        self.assertEqual(sorted(found), sorted(methods(self.free)))
        for method in found:
            alike, _ = self.free.grpc(method, "none")
            for kind, (_, status) in TABLE.items():
                expected = alike if status is None or method.startswith(f"/{HEALTH}/") else status
                self.assertEqual(self.keyed.grpc(method, kind)[0], expected, (method, kind))

    def test_a_stream_looks_at_its_key_before_it_reads(self):
        for method in methods(self.keyed):
            if method.startswith(f"/{HEALTH}/"):
                continue
            self.assertEqual(self.keyed.grpc(method, "twice")[0], UNAUTHENTICATED, method)

    def test_no_path_leads_around_a_key(self):
        for path in ("//v1/models", "/v1//models", "/./v1/models", "/v1/./models", "/health/../v1/models",
                     "/health/..%2fv1%2fmodels", "/v1%2fmodels", "/v1/models%2f", "/%2e/v1/models",
                     "/health%2f%2e%2e%2fv1%2fmodels", "/V1/models", "/v1/models.", "/v1/models/",
                     "/v1/models%20", "/v1/models;health", "/health/v1/models", "/health;/v1/models",
                     "/v1/models?/health", "/v1/models?key=" + self.secrets["user"], "/v1/mode%6cs",
                     "/metrics?health", "/health%3f", "/nothing", "/v1/models%00", "/health%00",
                     "/health%2e", "/HEALTH", "//health", "/health/", "/ready/../metrics"):
            self.assertEqual(self.keyed.http("GET", path, "none"), 401, path)
        for target, status in {"http://h/v1/models": (400, 401), "//h/v1/models": (401,),
                               "http://h/health/../v1/models": (400, 401), "\\v1\\models": (400, 401),
                               "v1/models": (400, 401), "/v1/models#/health": (400, 401)}.items():
            self.assertIn(self.keyed.http("GET", target, "none"), status, target)
        # What these are is health, with a query.
        for path in ("/health?/../v1/models", "/he%61lth"):
            text = send(self.keyed.server.http, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())[1]
            self.assertIn('"status":"ok"', text.replace(" ", ""))

    def test_no_field_leads_around_a_key(self):
        for field in ("X-Original-URL: /health", "X-Rewrite-URL: /health", "X-Forwarded-For: 127.0.0.1",
                      "X-Forwarded-Uri: /health", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1",
                      "X-HTTP-Method-Override: OPTIONS", "X-Method-Override: HEAD", "Host: localhost",
                      "Proxy-Authorization: Bearer " + self.secrets["user"],
                      "X-Api-Key: " + self.secrets["user"], "Cookie: key=" + self.secrets["user"],
                      "Authorization : Bearer " + self.secrets["user"],
                      "Authorization\t: Bearer " + self.secrets["user"]):
            self.assertIn(self.keyed.http("GET", "/v1/models", "none", fields=field + "\r\n"), (400, 401),
                          field)
        self.assertEqual(self.keyed.http("GET", "/v1/models", "twice"), 401)

    def test_no_method_leads_around_a_key(self):
        for method in ("HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "get", "PROPFIND"):
            self.assertIn(self.keyed.http(method, "/v1/models", "none", body=b""), (400, 401), method)
        preflight = "Origin: http://page.example\r\nAccess-Control-Request-Method: POST\r\n"
        for path, status in {"/v1/completions": 204, "/nothing": 401}.items():
            self.assertEqual(self.keyed.http("OPTIONS", path, "none", body=b"", fields=preflight), status)
        self.assertEqual(self.keyed.http("POST", "/v1/completions", "none", fields=preflight), 401)

    def test_old_http_and_pipelines_need_keys_too(self):
        where = self.keyed.server.http
        self.assertEqual(send(where, b"GET /health HTTP/1.0\r\n\r\n")[0], 200)
        self.assertEqual(send(where, b"GET /v1/models HTTP/1.0\r\n\r\n")[0], 401)
        right = f"Authorization: Bearer {self.secrets['user']}\r\n"
        asked = [("", 401), (right, 200), ("", 401), ("Authorization: Bearer hk-no\r\n", 401), (right, 200)]
        with Connection(where) as client:
            client.sendall("".join(f"GET /v1/models HTTP/1.1\r\nHost: h\r\n{field}\r\n"
                                   for field, _ in asked).encode())
            client.shutdown(1)
            text = client.rest()
        self.assertEqual([int(part[:3]) for part in text.split("HTTP/1.1 ")[1:]],
                         [status for _, status in asked])

    def test_large_bodies_of_strangers_are_not_read(self):
        body = b" " * (4 << 20)
        before = self.metric('hippodrome_http_body_bytes{listener="main"}')
        with Connection(self.keyed.server.http) as client:
            client.sendall(http_peers.request("/v1/completions", body)[:200])
            self.assertEqual(client.answer()[0], 401)
        self.assertEqual(self.metric('hippodrome_http_body_bytes{listener="main"}'), before)

    def test_refusals_are_counted_by_reason_and_name(self):
        count = lambda: collections.Counter(self.keyed.server.metrics())
        self.keyed.use_up("used up")
        before = count()
        self.keyed.http("GET", "/v1/models", "wrong")
        self.keyed.http("GET", "/v1/models", "expired")
        self.keyed.ask("GET", "/v1/models", "used up")
        self.keyed.grpc("/hippodrome.v1.Models/List", "none")
        self.keyed.http("GET", "/metrics", "user", self.keyed.server.admin)
        after = count()
        for name, more in {'hippodrome_request_failures_total{reason="auth"}': 4,
                           'hippodrome_request_failures_total{reason="limit"}': 1,
                           'hippodrome_key_refused_total{key="changed",reason="expired"}': 1,
                           'hippodrome_key_refused_total{key="used",reason="rate"}': 1,
                           'hippodrome_key_refused_total{key="user",reason="admin"}': 1}.items():
            self.assertEqual(after[name] - before[name], more, name)
        names = {name.split('key="')[1].split('"')[0] for name in after if 'key="' in name}
        self.assertEqual(names, {"user", "admin", "used", "changed"})

    def test_nothing_that_is_said_tells_a_secret(self):
        said = self.keyed.server.said() + self.keyed.server.get("/metrics")[1]
        for secret in self.secrets.values():
            self.assertNotIn(secret[3:12], said)


if __name__ == "__main__":
    arguments = http_peers.arguments()
    unittest.main(argv=sys.argv[:1])
