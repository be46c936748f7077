"""The HAProxy of deploy/ before two servers: ordinary calls, floods, and a server that stops.

  haproxy_test.py HIPPODROME MODEL_DIR HAPROXY CONFIG

The exit status is 77 if there is no HAPROXY.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import hostile_peers, raw_http2
from testing.hostile_peers import ALLOWED, HAProxy, Hippodrome

PROGRAM, MODEL, HAPROXY, CONFIG = sys.argv[1:5]
ENDLESS = 100000  # tokens
# HAProxy cuts an address off that sends more than 200 requests in a second. A caller here sends two each time.
CALLER_PAUSE = 0.02  # seconds


def body(tokens, stream=False):
    return json.dumps({"prompt": "It was", "max_tokens": tokens, "temperature": 0, "stream": stream,
                       "ignore_eos": True}).encode()


@contextlib.contextmanager
def sending(address, method, path, content=None):
    """The answer, whose content is not read yet."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, content, {"Content-Type": "application/json"})
        yield connection.getresponse()
    finally:
        connection.close()


def ask(address, method, path, content=None):
    with sending(address, method, path, content) as answer:
        return answer.status, answer.read()


def completion(address, tokens):
    status, text = ask(address, "POST", "/v1/completions", body(tokens))
    return json.loads(text)["choices"][0]["text"] if status == 200 else status


def streaming(address, tokens):
    return sending(address, "POST", "/v1/completions", body(tokens, stream=True))


def events(answer):
    """The texts of a stream, until it ends as it should."""
    for line in answer:
        if line == b"data: [DONE]\n":
            return
        if line.startswith(b"data: "):
            yield json.loads(line[6:])["choices"][0]["text"]
    raise RuntimeError("the stream was cut")


def metric(server, pattern):
    """The sum of the series that match."""
    _, text = ask(server.http, "GET", "/metrics")
    return sum(float(value) for value in re.findall(rf"^{pattern} (\S+)$", text.decode(), re.M))


def running(server):
    return metric(server, r"hippodrome_requests_running\{.*\}")


def completions(server):
    return metric(server, r"hippodrome_requests_total\{.*/v1/completions.*\}")


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class HAProxyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.servers = [cls.serve(f"log{i}") for i in range(2)]
        cls.proxy = HAProxy(HAPROXY, CONFIG, cls.servers, os.path.join(cls.work.name, "proxy"))

    @classmethod
    def tearDownClass(cls):
        cls.proxy.stop()
        codes = [cls.leave(server) for server in cls.servers]
        cls.work.cleanup()
        assert codes == [0, 0], codes

    @classmethod
    def serve(cls, log, *addresses):
        return Hippodrome(PROGRAM, MODEL, os.path.join(cls.work.name, log), "--drain-delay", "600",
                          "--grpc-max-connections-per-address", "1024", *addresses)

    @staticmethod
    def leave(server):
        server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: ask(server.http, "GET", "/ready")[0] == 503)
        # The second signal ends its waiting.
        return server.stop()

    def idle(self):
        return wait_until(lambda: not any(running(server) for server in self.servers))

    def test_ordinary_requests(self):
        self.assertEqual(ask(self.proxy.http, "GET", "/health")[0], 200)
        direct = completion(self.servers[0].http, 8)
        self.assertIsInstance(direct, str)
        self.assertEqual(completion(self.proxy.http, 8), direct)
        with streaming(self.proxy.http, 8) as answer:
            self.assertEqual("".join(events(answer)), direct)

    def test_bodies(self):
        large = json.dumps({"prompt": "a" * (7 << 20)}).encode()
        status, text = ask(self.proxy.http, "POST", "/tokenize", large)
        self.assertEqual((status, text), ask(self.servers[0].http, "POST", "/tokenize", large))
        self.assertEqual(status, 200)
        refused = json.dumps({"prompt": "a" * (9 << 20)}).encode()
        # The server says so before it has read all.
        self.assertEqual(ask(self.proxy.http, "POST", "/tokenize", refused)[0], 413)
        self.assertEqual(ask(self.proxy.http, "POST", "/v1/completions", b"{")[0], 400)

    def test_tokens_are_not_kept_back_and_clients_may_leave(self):
        with streaming(self.proxy.http, ENDLESS) as answer:
            texts = events(answer)
            for _ in range(5):
                next(texts)
            self.assertEqual(sum(map(running, self.servers)), 1)
        self.assertTrue(self.idle())

    def test_a_client_that_leaves_before_its_answer(self):
        connection = http.client.HTTPConnection(self.proxy.http, timeout=60)
        connection.request("POST", "/v1/completions", body(ENDLESS))
        self.assertTrue(wait_until(lambda: sum(map(running, self.servers)) == 1))
        connection.close()
        self.assertTrue(self.idle())

    def test_the_server_that_has_less_to_do(self):
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                next(events(stack.enter_context(streaming(self.proxy.http, ENDLESS))))
            self.assertEqual([running(server) for server in self.servers], [2, 2])
        self.assertTrue(self.idle())

    def test_floods_are_not_felt(self):
        for name in raw_http2.FLOODS:
            with self.subTest(name):
                found = hostile_peers.measure(self.servers[0], self.proxy.grpc, name, connections=2,
                                              seconds=0.5, allowed=ALLOWED)
                self.assertGreater(found["frames"], 0)
                self.assertTrue(found["answered"], found)
                self.assertEqual(found["neighbour_failures"], 0, found)
                self.assertLess(found["resident_peak"] - found["resident_before"], ALLOWED, found)

    def test_a_server_that_stops_loses_no_request(self):
        results, ended = [], threading.Event()

        def call_on():
            while not ended.is_set():
                results.append(isinstance(completion(self.proxy.http, 4), str))
                results.append(hostile_peers.answers(self.proxy.grpc))
                time.sleep(CALLER_PAUSE)

        callers = [threading.Thread(target=call_on) for _ in range(2)]
        for caller in callers:
            caller.start()
        leaving = self.servers[0]
        with streaming(self.proxy.http, 200) as first, streaming(self.proxy.http, 200) as second:
            streams = [events(first), events(second)]
            for stream in streams:
                next(stream)
            leaving.process.send_signal(signal.SIGTERM)
            for stream in streams:
                self.assertEqual(sum(1 for _ in stream), 199)
        self.assertTrue(wait_until(lambda: "http/hippodrome is DOWN" in self.proxy.said()))
        # Those that were under way.
        self.assertTrue(wait_until(lambda: running(leaving) == 0))
        before, all_before = completions(leaving), len(results)
        self.assertTrue(wait_until(lambda: len(results) >= all_before + 20))
        self.assertEqual(completions(leaving), before)
        # The second signal: it need not wait any longer.
        self.assertEqual(leaving.stop(), 0)
        all_before = len(results)
        self.assertTrue(wait_until(lambda: len(results) >= all_before + 20))
        ended.set()
        for caller in callers:
            caller.join()
        self.assertTrue(all(results), results)
        again = self.serve("again", "--http", leaving.http, "--grpc", leaving.grpc)
        self.servers[0] = again
        self.assertTrue(wait_until(lambda: completion(self.proxy.http, 1) and completions(again)))


class ForwardedTest(unittest.TestCase):
    def test_what_is_said_of_a_clients_address_is_not_believed(self):
        """Whoever says to be others still has the share of one in the queue."""
        with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
            server = Hippodrome(PROGRAM, MODEL, os.path.join(work, "log"), "--max-sequences", "1",
                                "--max-queue", "8", "--grace-seconds", "0")
            stack.callback(server.stop)
            running_one = stack.enter_context(streaming(server.http, ENDLESS))
            next(events(running_one))

            def begin(number, source):
                connection = http.client.HTTPConnection(server.http, timeout=60,
                                                        source_address=(source, 0))
                stack.callback(connection.close)
                connection.request("POST", "/v1/completions", body(ENDLESS, stream=True), {
                    "Content-Type": "application/json", "X-Forwarded-For": f"192.0.2.{number}",
                    "Forwarded": f"for=192.0.2.{number}", "X-Real-IP": f"192.0.2.{number}"})

            def refused():
                return metric(server, r'hippodrome_admission_rejected_total\{.*"client_share".*\}')

            def queued():
                return metric(server, r"hippodrome_requests_queued\{.*\}")

            for number in range(8):
                begin(number, "127.0.0.1")
            self.assertTrue(wait_until(lambda: refused() == 2 and queued() == 6), (refused(), queued()))
            begin(0, "127.0.0.2")
            self.assertTrue(wait_until(lambda: queued() == 7))
            self.assertEqual(refused(), 2)


def make_certificate(folder):
    """Of an authority of its own, for localhost: the path of the certificate, and of it with its key."""
    certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    both = os.path.join(folder, "both.pem")
    with open(both, "w") as file:
        for path in (certificate, key):
            with open(path) as part:
                file.write(part.read())
    return certificate, key, both


class EncryptedTest(unittest.TestCase):
    """TLS between clients and HAProxy."""

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.certificate, cls.key, both = make_certificate(cls.work.name)
        cls.server = Hippodrome(PROGRAM, MODEL, os.path.join(cls.work.name, "log"), *cls.options(),
                                "--grpc-max-connections-per-address", "1024")
        cls.http_1, cls.http_2 = (ssl.create_default_context(cafile=cls.certificate) for _ in range(2))
        cls.http_2.set_alpn_protocols(["h2"])
        cls.proxy = HAProxy(HAPROXY, CONFIG, [cls.server], os.path.join(cls.work.name, "proxy"),
                            tls=cls.http_2, HAPROXY_CERTIFICATE=both, **cls.variables())

    @classmethod
    def options(cls):
        """Of the server."""
        return ()

    @classmethod
    def variables(cls):
        return {}

    @classmethod
    def tearDownClass(cls):
        codes = cls.proxy.stop(), cls.server.stop()
        cls.work.cleanup()
        assert codes[1] == 0, codes

    def test_completions(self):
        port = int(self.proxy.http.rsplit(":", 1)[1])
        connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=self.http_1)
        connection.request("POST", "/v1/completions", body(8), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.read())["usage"]["completion_tokens"], 8)
        connection.close()

    def test_calls(self):
        self.assertTrue(hostile_peers.answers(self.proxy.grpc, tls=self.http_2))

    def test_others_are_not_trusted(self):
        stranger = ssl.create_default_context()
        with self.assertRaises(ssl.SSLCertVerificationError):
            with raw_http2.Connection(self.proxy.grpc, tls=stranger):
                pass

    def test_clients_must_speak_tls(self):
        self.assertFalse(hostile_peers.answers(self.proxy.grpc))
        with self.assertRaises((http.client.HTTPException, OSError)):
            ask(self.proxy.http, "GET", "/health")
        self.assertTrue(hostile_peers.answers(self.proxy.grpc, tls=self.http_2))

    def test_old_protocols_are_refused(self):
        old = ssl.create_default_context(cafile=self.certificate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old.maximum_version = ssl.TLSVersion.TLSv1_1
            old.minimum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises(OSError):
            with raw_http2.Connection(self.proxy.grpc, tls=old):
                pass


class EncryptedServerTest(EncryptedTest):
    """TLS between HAProxy and the server too."""

    @classmethod
    def options(cls):
        return "--tls-cert", cls.certificate, "--tls-key", cls.key

    @classmethod
    def variables(cls):
        return {"HIPPODROME_CA": cls.certificate}

    def test_a_server_with_another_name_is_not_used(self):
        log = os.path.join(self.work.name, "stranger")
        with self.assertRaisesRegex(RuntimeError, "no server available"):
            HAProxy(HAPROXY, CONFIG, [self.server], log, HIPPODROME_NAME="elsewhere", **self.variables())


if __name__ == "__main__":
    if not os.access(HAPROXY, os.X_OK):
        print(f"there is no HAProxy at {HAPROXY}; tools/deps --checks installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
