"""The Dockerfile and compose.yaml of deploy/docker.

  dockerfile_test.py [--long]

The short form reads them: instructions are those that the long form knows, what is copied is there, and
names and ports agree. The long form, for root, has no Docker: it runs the steps in roots that mmdebstrap
makes, then serves from the last one as its user, with the root read-only, calls it, and stops it.
The exit status is 77 if python3-yaml is missing.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import fresh_root

try:
    import yaml
except ImportError:
    yaml = None

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
DOCKER = os.path.join(ROOT, "deploy", "docker")
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def read(name):
    with open(os.path.join(DOCKER, name)) as file:
        return file.read()


def instructions():
    """[(word, rest)], with comments gone and lines joined."""
    text = re.sub(r"^#.*\n", "", read("Dockerfile"), flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


class Stage:
    def __init__(self, base, name):
        self.base, self.name = base, name
        self.steps = []
        self.settings = {}


def stages():
    defaults, found = {}, []
    for word, rest in instructions():
        if word == "ARG":
            name, value = rest.split("=", 1)
            defaults[name] = value
        elif word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(re.sub(r"\$\{(\w+)\}", lambda m: defaults[m[1]], base), name or "last"))
        elif word in ("WORKDIR", "COPY", "RUN", "USER"):
            found[-1].steps.append((word, rest))
        else:
            found[-1].settings[word] = rest
    return found


def health_check(stage):
    return json.loads(stage.settings["HEALTHCHECK"].split(" CMD ", 1)[1])


def program(stage):
    return json.loads(stage.settings["ENTRYPOINT"]) + json.loads(stage.settings["CMD"])


def listeners(stage):
    """{name: port} of the command."""
    return {name: port for name, port in
            re.findall(r'"--(http|grpc|admin)", "0\.0\.0\.0:(\d+)"', stage.settings["CMD"])}


class DockerfileTest(unittest.TestCase):
    def test_instructions_are_known(self):
        self.assertLessEqual({word for word, _ in instructions()}, KNOWN)
        build, last = stages()
        for stage in (build, last):
            self.assertRegex(stage.base, r"^debian:12\.\d+-slim$")

    def test_what_is_copied_is_there(self):
        build, last = stages()
        ignored = read("Dockerfile.dockerignore").split()
        for word, rest in build.steps:
            if word == "COPY":
                source = rest.split()[0]
                self.assertTrue(os.path.exists(os.path.join(ROOT, source)), source)
                self.assertNotIn(source, ignored)
        with open(os.path.join(ROOT, "CMakeLists.txt")) as file:
            version = re.search(r"VERSION (\d+\.\d+\.\d+)", file.read())[1]
        copies = [rest for word, rest in last.steps if word == "COPY"]
        self.assertEqual(len(copies), 1)
        self.assertIn(f"--from={build.name} ", copies[0])
        self.assertIn(f"/hippodrome_{version}_amd64.deb", copies[0])
        self.assertIn(f"hippodrome:{version}\n", read("compose.yaml"))

    def test_it_does_not_run_as_root(self):
        users = [rest for word, rest in stages()[-1].steps if word == "USER"]
        self.assertEqual(len(users), 1)
        self.assertRegex(users[0], r"^[1-9]\d+:[1-9]\d+$")
        self.assertEqual(stages()[-1].steps[-1][0], "USER")

    def test_ports_agree(self):
        last = stages()[-1]
        ports = listeners(last)
        self.assertEqual(set(ports), {"http", "grpc", "admin"})
        self.assertEqual(sorted(ports.values()), sorted(last.settings["EXPOSE"].split()))
        self.assertIn(f"/dev/tcp/127.0.0.1/{ports['admin']} ", health_check(last)[2])
        self.assertEqual(json.loads(read("targets.json")), [{"targets": [f"hippodrome:{ports['admin']}"]}])


@unittest.skipUnless(yaml, "needs python3-yaml")
class ComposeTest(unittest.TestCase):
    def setUp(self):
        self.services = yaml.safe_load(read("compose.yaml"))["services"]

    def volumes(self, name):
        """{inside: on the machine} of what is a file or folder there."""
        split = [volume.split(":") for volume in self.services[name]["volumes"]]
        return {inside: os.path.normpath(os.path.join(DOCKER, source))
                for source, inside, *_ in split if source.startswith(".")}

    def test_images_have_fixed_tags(self):
        for name, service in self.services.items():
            self.assertRegex(service["image"], r"^[a-z/]+:v?\d+\.\d+\.\d+$", name)
        # The version that tests/e2e/monitoring/prometheus_test.py runs.
        with open(os.path.join(ROOT, "deploy", "prometheus", "prometheus.yml")) as file:
            tested = re.search(r"Prometheus \(([\d.]+), Debian 12\)", file.read())[1]
        self.assertEqual(self.services["prometheus"]["image"], f"prom/prometheus:v{tested}.0")

    def test_the_image_is_the_one_of_the_dockerfile(self):
        build = self.services["hippodrome"]["build"]
        context = os.path.normpath(os.path.join(DOCKER, build["context"]))
        self.assertEqual(context, ROOT)
        self.assertEqual(os.path.join(context, build["dockerfile"]), os.path.join(DOCKER, "Dockerfile"))
        self.assertTrue(self.services["hippodrome"]["read_only"])
        self.assertEqual(self.services["hippodrome"]["cap_drop"], ["ALL"])

    def test_ports_are_published_on_this_machine_alone(self):
        ports = listeners(stages()[-1])
        published = {name: service["ports"] for name, service in self.services.items()}
        expected = [f"127.0.0.1:{ports[name]}:{ports[name]}" for name in ("http", "grpc")]
        self.assertEqual(published, {"hippodrome": expected, "prometheus": ["127.0.0.1:9090:9090"],
                                     "grafana": ["127.0.0.1:3000:3000"]})

    def test_what_is_mounted_is_there(self):
        inside = self.volumes("prometheus")
        self.assertTrue(os.path.isfile(os.path.join(inside["/etc/prometheus"], "prometheus.yml")))
        self.assertTrue(os.path.isfile(inside["/etc/prometheus/targets.json"]))
        inside = self.volumes("grafana")
        self.assertTrue(os.path.isdir(os.path.join(inside["/etc/grafana/provisioning"], "dashboards")))
        set_for_grafana = self.services["grafana"]["environment"]
        boards = inside[set_for_grafana["HIPPODROME_DASHBOARDS"]]
        self.assertIn("overview.json", os.listdir(boards))
        files = pathlib.Path(inside["/etc/grafana/provisioning"]).glob("*/*.yml")
        provisioned = "".join(file.read_text() for file in files)
        self.assertEqual(set(re.findall(r"\$(\w+)", provisioned)),
                         {name for name in set_for_grafana if not name.startswith("GF_")})
        self.assertEqual(set_for_grafana["PROMETHEUS_URL"], "http://prometheus:9090")


# ---- The long form


def say(*what):
    print(*what, flush=True)


class Builder:
    """Runs the steps of the stages in roots of their own."""

    def __init__(self, work):
        self.work, self.roots, self.first = work, {}, None

    def run(self, stage):
        say(f"== FROM {stage.base} AS {stage.name}: bookworm, by mmdebstrap --variant=minbase")
        root = fresh_root.FreshRoot(os.path.join(self.work, stage.name), copy_of=self.first)
        self.first = self.first or root
        self.roots[stage.name] = root
        directory, user = "/", "0:0"
        for word, rest in stage.steps:
            say(f"-- {word} {' '.join(rest.split())}")
            begin = time.monotonic()
            if word == "WORKDIR":
                directory = rest
                os.makedirs(root.path(rest), exist_ok=True)
            elif word == "COPY":
                self.copy(root, directory, rest.split())
            elif word == "RUN":
                said = root.run(["/bin/sh", "-c", rest], user=user, directory=directory)
                say("   " + "\n   ".join(said.strip().splitlines()[-3:]))
            elif word == "USER":
                user = rest
            say(f"   {time.monotonic() - begin:.1f} s")
        return root, user

    def copy(self, root, directory, words):
        source_root, ignored = ROOT, read("Dockerfile.dockerignore").split()
        if words[0].startswith("--from="):
            source_root, ignored = self.roots[words.pop(0)[7:]].folder, []
        source = os.path.join(source_root, words[0].lstrip("/"))
        target = root.path(os.path.join(directory, words[1]))
        if os.path.isdir(source):
            skip = lambda folder, names: [n for n in names if folder == source_root and n in ignored]
            shutil.copytree(os.path.normpath(source), os.path.normpath(target), ignore=skip,
                            dirs_exist_ok=True, symlinks=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)


def serve_and_call(root, user, stage):
    say(f"== run as {user}, with a read-only root: {shlex.join(program(stage))}")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            root.inside(program(stage), user=user, read_only=True, private_network=True),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            call_while_it_runs(process, root, user, stage)
        finally:
            if process.poll() is None:
                process.kill()
            log.seek(0)
            say(log.read())


def first_process(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return file.read().split()[0]


def call_while_it_runs(process, root, user, stage):
    here = lambda *command: ["nsenter", "--target", first_process(process), "--net", *command]
    chroot = ["chroot", f"--userspec={user}", "--groups=", root.folder]
    health = lambda: subprocess.run(here(*chroot, *health_check(stage)), stderr=subprocess.DEVNULL).returncode
    time.sleep(0.05)
    early = health()
    for _ in range(300):
        if health() == 0:
            break
        assert process.poll() is None, "it ended"
        time.sleep(0.1)
    say(f"health check: {early} at first, then {health()}")
    assert health() == 0
    with open(f"/proc/{first_process(process)}/status") as file:
        status = file.read()
    ids = re.findall(r"^[UG]id:\s+(\d+)\s+(\d+)", status, re.M)
    say(f"user and group of the process: {ids}")
    assert all("0" not in pair for pair in ids), ids
    ports = listeners(stage)
    for path, body in (("/v1/completions", {"model": "h3-demo", "prompt": "It was", "max_tokens": 8}),
                       ("/predict", {"inputs": "My dogs love these treats."})):
        answer = fresh_root.run(here(
            "curl", "-sS", "--fail-with-body", f"http://127.0.0.1:{ports['http']}{path}",
            "-H", "Content-Type: application/json", "-d", json.dumps(body)))
        say(f"{path}: {answer}")
    os.kill(int(first_process(process)), signal.SIGTERM)
    code = process.wait(60)
    say(f"stopped by SIGTERM: status {code}")
    assert code == 0


def long_form():
    with tempfile.TemporaryDirectory(prefix="dockerfile-") as work:
        builder = Builder(work)
        for stage in stages():
            root, user = builder.run(stage)
        size = fresh_root.run(["du", "-sh", root.folder]).split()[0]
        say(f"the last root is {size}")
        serve_and_call(root, user, stages()[-1])
    say("passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--long"]:
        sys.exit(long_form())
    if yaml is None:
        print("python3-yaml is missing; tools/deps --checks installs it")
        sys.exit(77)
    unittest.main()
