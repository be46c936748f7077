#!/usr/bin/env python3
"""`bench serve` against the real program: both protocols, in open and closed loops, with TLS and a key, and
what it writes; then prompts that cannot be read, refusals, and a server that is gone.

  bench_serve_test.py HIPPODROME MODELS_DIR
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.http_peers import Server, arguments
from testing.processes import Process

given = arguments()
FIELDS = {"name", "length", "batch", "weights", "value", "unit", "limit", "fraction"}
LATENCIES = ("time_to_first_token", "inter_token_latency", "time_per_output_token", "end_to_end", "client_lag")


class BenchServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="hippodrome-")
        cls.server = Server(given.hippodrome, given.models)
        cls.addresses = {name: "%s:%d" % cls.server.address(name) for name in ("http", "grpc")}

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_bench(self, *options):
        return subprocess.run([given.hippodrome, "bench", "serve", *options], capture_output=True, text=True)

    def bench(self, *options):
        """The report."""
        done = self.run_bench(*options, "--json", self.path("report.json"))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        with open(self.path("report.json")) as file:
            return json.load(file)

    def assert_report(self, report, points):
        self.assertEqual(set(report), {"machine", "command", "ceilings", "results", "points"})
        self.assertEqual(len(report["points"]), points)
        for result in report["results"]:
            self.assertEqual(set(result) - {"rate"}, FIELDS)
            if result["limit"] > 0:
                self.assertAlmostEqual(result["fraction"], result["value"] / result["limit"])

    def values(self, report, **where):
        return {result["name"]: result["value"] for result in report["results"]
                if all(result[name] == value for name, value in where.items())}

    def assert_ordered(self, values, latencies=LATENCIES):
        for latency in latencies:
            of = [values[f"{latency}_{part}"] for part in ("p50", "p90", "p95", "p99", "max")]
            self.assertEqual(of, sorted(of))
            self.assertGreaterEqual(of[0], 0)

    def test_an_open_loop_sweeps_rates(self):
        for protocol, address in self.addresses.items():
            with self.subTest(protocol=protocol):
                report = self.bench(f"--{protocol}", address, "--rate", "100,200", "--requests", "20", "--prompt", "4-9",
                                    "--tokens", "5", "--limit-ttft", "1e9", "--svg", self.path("sweep.svg"))
                self.assert_report(report, 2)
                for rate, point in zip((100, 200), report["points"]):
                    self.assertEqual((point["requests"], point["answered"], point["rate"]), (20, 20, rate))
                    self.assertEqual(point["codes"], {"200" if protocol == "http" else "OK": 20})
                    self.assertEqual((point["within_limits"], point["within_limits_share"]), (20, 1))
                    self.assert_ordered(self.values(report, rate=rate))
                picture = xml.etree.ElementTree.parse(self.path("sweep.svg")).getroot()
                self.assertTrue(picture.tag.endswith("svg"))
                said = [text.text for text in picture.iter() if text.tag.endswith("text")]
                for label in ("time to first token, ms", "offered requests/s (Poisson arrivals)", "requests/s",
                              "within the limits", "median"):
                    self.assertIn(label, said)

    def test_a_closed_loop_sweeps_clients(self):
        for protocol, address in self.addresses.items():
            with self.subTest(protocol=protocol):
                report = self.bench(f"--{protocol}", address, "--concurrency", "1,4", "--requests", "8",
                                    "--prompt", "8", "--tokens", "6", "--limit-ttft", "0", "--model", "h3-demo")
                self.assert_report(report, 2)
                for clients, point in zip((1, 4), report["points"]):
                    self.assertEqual((point["answered"], point["concurrency"]), (8, clients))
                    self.assertEqual(point["within_limits"], 0)
                    values = self.values(report, batch=clients)
                    self.assert_ordered(values)
                    self.assertAlmostEqual(values["output_tokens_per_second"] / values["requests_per_second"], 6)
                    self.assertAlmostEqual(values["total_tokens_per_second"] / values["requests_per_second"], 14)

    def test_the_same_seed_gives_the_same_load(self):
        asked = ("--http", self.addresses["http"], "--rate", "100", "--duration", "0.3", "--prompt", "1-20", "--tokens", "1-4")
        numbers = []
        for seed in ("3", "3", "4"):
            before = self.server.metrics()['hippodrome_prompt_tokens_total{model="h3-demo"}']
            point = self.bench(*asked, "--seed", seed)["points"][0]
            tokens = self.server.metrics()['hippodrome_prompt_tokens_total{model="h3-demo"}'] - before
            numbers.append((point["requests"], tokens))
        self.assertEqual(numbers[0], numbers[1])
        self.assertNotEqual(numbers[0], numbers[2])

    def test_encoders(self):
        for protocol, address in self.addresses.items():
            report = self.bench(f"--{protocol}", address, "--task", "predict", "--prompt", "3", "--concurrency", "2",
                                "--requests", "6")
            self.assertEqual(report["points"][0]["answered"], 6)
            self.assert_ordered(self.values(report), ("end_to_end", "client_lag"))
            self.assertNotIn("time_to_first_token_p50", self.values(report))

    def test_prompts_of_a_file(self):
        with open(self.path("p.jsonl"), "w") as file:
            file.write('{"prompt": "The night was", "max_tokens": 3}\n{"prompt": [1, 2, 3, 4, 5], "max_tokens": 2}\n')
        report = self.bench("--grpc", self.addresses["grpc"], "--prompts", self.path("p.jsonl"), "--concurrency", "1",
                            "--requests", "4")
        values = self.values(report)
        self.assertAlmostEqual(values["output_tokens_per_second"] / values["requests_per_second"], 2.5)
        with open(self.path("bad.jsonl"), "w") as file:
            file.write('{"prompt": "The night was"}\n{"text": "x"}\n')
        done = self.run_bench("--http", self.addresses["http"], "--prompts", self.path("bad.jsonl"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad.jsonl, line 2: expected", done.stderr)

    def test_more_connections_than_descriptors_at_first(self):
        asked = [given.hippodrome, "bench", "serve", "--http", self.addresses["http"], "--concurrency", "150",
                 "--requests", "150", "--prompt", "4", "--tokens", "1"]
        for most, code, said in ((4096, 0, "150 answered"), (100, 1, "descriptors")):
            limit = lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
            done = subprocess.run(asked, capture_output=True, text=True, preexec_fn=limit)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stdout + done.stderr)

    def test_what_fails_is_told(self):
        done = self.run_bench("--http", self.addresses["http"], "--model", "nobody", "--requests", "2",
                              "--concurrency", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 x 404", done.stdout)
        self.assertIn("nobody", done.stderr)
        for wrong in (("--rate", "1"), ("--http", "a:1", "--grpc", "b:1"), ("--http", "a:1", "--rate", "0"),
                      ("--http", "a:1", "--rate", "1,,2"), ("--http", "a:1", "--rate", "1", "--concurrency", "1"),
                      ("--http", "a:1", "--concurrency", "1.5"), ("--http", "a:1", "--prompt", "9-3"),
                      ("--http", "a:1", "--duration", "0"), ("--http", "a:1", "--requests", "1", "--duration", "1")):
            self.assertEqual(self.run_bench(*wrong).returncode, 2, wrong)

    def test_a_server_that_is_gone(self):
        with Server(given.hippodrome, given.models) as server:
            addresses = {name: "%s:%d" % server.address(name) for name in ("http", "grpc")}
            server.stop()
        for protocol, address in addresses.items():
            done = self.run_bench(f"--{protocol}", address, "--requests", "2", "--concurrency", "1")
            self.assertEqual(done.returncode, 1)
            self.assertIn("onnect", done.stderr)

    def test_refusals_are_counted_and_sent_again(self):
        with Server(given.hippodrome, given.models, "--max-sequences", "1", "--max-queue", "1") as server:
            address = "%s:%d" % server.address("http")
            asked = ("--http", address, "--concurrency", "6", "--requests", "6", "--prompt", "4", "--tokens", "200")
            point = self.bench(*asked)["points"][0]
            self.assertEqual(point["answered"] + point["refused"], 6)
            self.assertEqual(point["codes"].get("429", 0), point["refused"])
            self.assertGreater(point["refused"], 0)
            again = self.bench(*asked, "--retries", "50")["points"][0]
            self.assertGreater(again["sent_again"], 0)
            self.assertEqual(again["answered"], 6)

    def make_certificate(self, name):
        certificate, key = self.path(name + ".pem"), self.path(name + "-key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-days", "1", "-subj", "/CN=" + name, "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        return certificate, key

    def test_tls_with_a_client_certificate(self):
        (certificate, key), (foreign, _) = self.make_certificate("own"), self.make_certificate("foreign")
        identity = ("--tls-client-cert", certificate, "--tls-client-key", key)
        server = Process([given.hippodrome, "serve", "--device", "cpu", "--model", os.path.join(given.models, "h3-demo"),
                          "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--tls-cert", certificate,
                          "--tls-key", key, "--tls-client-ca", certificate], self.path("log"))
        try:
            for protocol in ("http", "grpc"):
                address = server.listens(protocol)
                asked = (f"--{protocol}", address, "--requests", "4", "--concurrency", "2", "--prompt", "4",
                         "--tokens", "4")
                report = self.bench(*asked, "--tls-ca", certificate, *identity)
                self.assertEqual(report["points"][0]["answered"], 4)
                # Not a server of another authority; nor without TLS, nor without a certificate.
                self.assertEqual(self.run_bench(*asked, "--tls-ca", foreign, *identity).returncode, 1)
                self.assertEqual(self.run_bench(*asked).returncode, 1)
                self.assertEqual(self.run_bench(*asked, "--tls-ca", certificate).returncode, 1)
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main(argv=["bench_serve_test.py"])
