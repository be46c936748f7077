#!/usr/bin/env python3
"""Time to first token and goodput against the rate of requests: HTTP and gRPC, with TLS and without.

  serve_sweeps.py HIPPODROME MODELS_DIR FOLDER [http|http-tls|grpc|grpc-tls]... [--rates R,R...] [--seconds S]

Writes sweep-NAME.json and sweep-NAME.svg into FOLDER, as `bench serve` does. Each has a server of its own; client
and server share the machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
from testing.processes import Process

SWEEPS = ("http", "http-tls", "grpc", "grpc-tls")
LOAD = ["--model", "h3-demo", "--prompt", "64", "--tokens", "64", "--warm-up", "2", "--seed", "1",
        "--limit-ttft", "100", "--limit-itl", "50"]


def make_certificate(folder):
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def sweep(given, name, folder):
    protocol = name.split("-")[0]
    serving, calling = [], []
    if name.endswith("-tls"):
        certificate, key = make_certificate(folder)
        serving = ["--tls-cert", certificate, "--tls-key", key]
        calling = ["--tls-ca", os.path.basename(certificate)]
    server = Process([given.hippodrome, "serve", "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                      "--model", os.path.join(given.models, "h3-demo"), *serving], os.path.join(folder, "log"))
    try:
        files = [f"sweep-{name}.json", f"sweep-{name}.svg"]
        subprocess.run([os.path.abspath(given.hippodrome), "bench", "serve", "--" + protocol, server.listens(protocol),
                        "--rate", given.rates, "--duration", given.seconds, *LOAD, *calling, "--json", files[0],
                        "--svg", files[1]], check=True, cwd=folder)
        for file in files:
            shutil.copy(os.path.join(folder, file), given.folder)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    for place in ("hippodrome", "models", "folder"):
        parser.add_argument(place)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rates", default="8,32,64,96,128,192")
    parser.add_argument("--seconds", default="6")
    given = parser.parse_args()
    if not set(given.names) <= set(SWEEPS):
        parser.error("NAME is one of " + ", ".join(SWEEPS))
    for name in given.names or SWEEPS:
        with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
            sweep(given, name, folder)


if __name__ == "__main__":
    sys.exit(main())
