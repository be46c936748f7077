"""The packaged Prometheus, with deploy/prometheus, scrapes the server under mixed traffic; then every
expression of the dashboards and of the alerts has values.

  prometheus_test.py HIPPODROME MODELS_DIR GOLDEN_DIR PROMETHEUS [--long] [--report FILE]

--long lets more traffic pass, and --report has each expression with its values. An alert's condition is
asked for with `bool` after its comparisons: 0 or 1, where the rule itself gives nothing while all is well.
The exit status is 77 if there is no PROMETHEUS.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import api_keys, encoder_models
from testing.free_ports import free_addresses
from testing.http_peers import Server, wait_until
from testing.mixed_traffic import ANSWERED, MixedTraffic
from testing.processes import Process

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
# As Grafana sets them while all servers and models are chosen; the interval is that of 1 s between scrapes.
VARIABLES = {"$instance": ".*", "$model": ".*", "$__rate_interval": "4s"}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Prometheus(Process):
    """With a copy of deploy/prometheus, for one server, which it scrapes each second."""

    def __init__(self, program, server, work, key):
        folder = os.path.join(work, "prometheus")
        shutil.copytree(os.path.join(ROOT, "deploy", "prometheus"), folder)
        self.rewrite(folder, "targets.json", "127.0.0.1:8081", "%s:%d" % server.admin)
        self.rewrite(folder, "prometheus.yml", "_interval: 15s", "_interval: 1s")
        # As docs/operate.md has it for a server with keys.
        with open(os.path.join(folder, "prometheus.yml"), "a") as file:
            file.write(f"    authorization: {{credentials: {key}}}\n")
        self.address, = free_addresses(1)
        super().__init__([program, "--config.file", os.path.join(folder, "prometheus.yml"),
                          "--storage.tsdb.path", os.path.join(work, "data"),
                          "--web.listen-address", self.address], os.path.join(work, "prometheus.log"))

    @staticmethod
    def rewrite(folder, name, old, new):
        path = os.path.join(folder, name)
        with open(path) as file:
            text = file.read()
        assert old in text, (name, old)
        os.chmod(path, 0o644)
        with open(path, "w") as file:
            file.write(text.replace(old, new))

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with DIRECT.open(f"http://{self.address}/api/v1/{path}?{query}", timeout=60) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        """[(labels, value)]."""
        return [(series["metric"], float(series["value"][1]))
                for series in self.get("query", query=expression)["result"]]

    def scrapes(self):
        """How many succeeded so far."""
        try:
            found = self.values('sum_over_time(up{job="hippodrome"}[10m])')
        except OSError:
            return 0
        return found[0][1] if found else 0


def panels(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def dashboard_expressions():
    """(where, expression) of all."""
    folder = os.path.join(ROOT, "deploy", "grafana", "dashboards")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            board = json.load(file)
        for panel in panels(board):
            for target in panel.get("targets", []):
                expression = target["expr"]
                for variable, value in VARIABLES.items():
                    expression = expression.replace(variable, value)
                assert "$" not in expression, expression
                yield f"{name[:-5]}: {panel['title']}", expression
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((\w+(?:{.*})?), (\w+)\)", variable["definition"])
                selector = found[1].replace("$instance", ".*")
                yield f"{name[:-5]}: the variable {variable['name']}", f"count by ({found[2]}) ({selector})"


def with_bool(condition):
    """The condition, so that each comparison says 0 or 1. Names and texts with such signs are left alone."""
    return re.sub(r"""("[^"]*"|\{[^}]*\})|(==|!=|>=|<=|>|<)""",
                  lambda found: found[1] or found[2] + " bool", condition)


def alert_expressions(prometheus):
    for group in prometheus.get("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule
            yield f"alert {rule['name']}", with_bool(rule["query"])


def families_without_samples(text):
    """Names that are announced, but have no series; and histograms in which nothing was counted."""
    announced = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
    silent = []
    for name in sorted(announced):
        samples = re.findall(rf"^{name}(?:_count)?(?:{{.*}})? (\S+)$", text, re.M)
        is_histogram = f"# TYPE {name} histogram" in text
        if not samples or is_histogram and not any(float(value) for value in samples):
            silent.append(name)
    return silent


class Checks:
    def __init__(self):
        self.failed, self.lines = [], []

    def expect(self, fine, what):
        if not fine:
            self.failed.append(what)

    def evaluate(self, prometheus, where, expression):
        found = prometheus.values(expression)
        finite = [value for _, value in found if math.isfinite(value)]
        self.expect(finite, f"{where}: {expression} gives {found}")
        shown = ", ".join(f"{value:.6g}" for value in sorted(finite)[-4:])
        self.lines.append(f"{where}\n    {expression}\n    {len(finite)} of {len(found)} series have a value: {shown}")


def check_exposition(checks, server):
    _, answer = server.get("/metrics", server.admin)
    text = answer.split("\r\n\r\n", 1)[1]
    if "transfer-encoding: chunked" in answer.lower():
        text = re.sub(r"(?:^|\r\n)[0-9a-f]+\r\n", "", text)
    silent = families_without_samples(text)
    checks.expect(not silent, f"families without samples: {silent}")
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    checks.expect(said.returncode == 0 and not said.stderr and not said.stdout,
                  f"promtool check metrics: {said.stdout}{said.stderr}")
    checks.lines.append(f"promtool check metrics: {len(text.splitlines())} lines, status {said.returncode}")


def check(checks, server, prometheus, keys, seconds):
    with MixedTraffic(server, keys) as traffic:
        time.sleep(seconds)
        scrapes = prometheus.scrapes()
        if not wait_until(lambda: prometheus.scrapes() >= scrapes + 5):
            raise RuntimeError("Prometheus does not scrape: " + prometheus.said())
        # While requests run, some of each kind at any time.
        for where, expression in (*dashboard_expressions(), *alert_expressions(prometheus)):
            checks.evaluate(prometheus, where, expression)
    check_exposition(checks, server)
    for kind in ANSWERED:
        checks.expect((kind, 200) in traffic.counts, f"no answer: {kind} in {traffic.counts}")
    for kind, status in (("crowd", 429), ("deadline", 4), ("left over HTTP", 0), ("left over gRPC", 0),
                         ("no key", 401), ("another's model", 403), ("too often", 429)):
        checks.expect((kind, status) in traffic.counts, f"no {kind}, {status} in {traffic.counts}")
    checks.lines += [f"asked: {kind}: {status}: {count} times"
                     for (kind, status), count in sorted(traffic.counts.items(), key=str)]


def make_keys(hippodrome, work):
    """The path of a file of keys, and the secrets in it by name."""
    limits = {"bounded": {"models": ["bigs-demo"], "limits": {"requests_per_minute": 6, "calls": 1}},
              "prometheus": {"admin": True, "models": ["none"]}, "app": {}, "crowd": {}}
    made = {name: api_keys.new(hippodrome, name, **more) for name, more in limits.items()}
    path = os.path.join(work, "keys.json")
    api_keys.write(path, [entry for _, entry in made.values()])
    return path, {name: secret for name, (secret, _) in made.items()}


def main():
    parser = argparse.ArgumentParser()
    for name in ("hippodrome", "models", "golden", "prometheus"):
        parser.add_argument(name)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--report")
    arguments = parser.parse_args()
    if not os.access(arguments.prometheus, os.X_OK):
        print(f"there is no Prometheus at {arguments.prometheus}; tools/deps --checks installs it")
        return 77
    checks = Checks()
    with tempfile.TemporaryDirectory() as work:
        models = encoder_models.make_models(os.path.abspath(arguments.golden), work)
        options = [part for name in ("filler", "tagger", "answerer")
                   for part in ("--model", f"{name}={models[name]}")]
        path, keys = make_keys(arguments.hippodrome, work)
        with Server(arguments.hippodrome, arguments.models, "--admin", "127.0.0.1:0", "--api-keys", path,
                    "--max-sequences", "4", "--max-queue", "12", *options,
                    key=keys["prometheus"]) as server:
            prometheus = Prometheus(arguments.prometheus, server, work, keys["prometheus"])
            try:
                check(checks, server, prometheus, keys, 60 if arguments.long else 0)
            finally:
                prometheus.stop()
    if arguments.report:
        with open(arguments.report, "w") as file:
            file.write("\n".join(checks.lines) + "\n")
    for failure in checks.failed:
        print("FAILED:", failure)
    print(f"{len(checks.lines)} lines, {len(checks.failed)} failures")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
