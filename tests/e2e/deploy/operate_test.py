"""Every command of docs/operate.md, in its order.

  operate_test.py BUILD_FOLDER [--report FILE]
  operate_test.py --long HIPPODROME_DEB [--report FILE]

The short form installs the build into a folder, runs them with paths and ports of its own, and stands in for
what it must not touch: it starts and stops services as systemctl would, and apt-get, chown and logrotate do
nothing.
The long form, for root, runs them as they are, with the package, in a fresh Debian 12 whose systemd runs as
its first process (mmdebstrap).
The exit status is 77 if a program is missing.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.free_ports import free_ports

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
PORTS = ("8080", "8081", "50051", "9090")
NEEDED = ("bash", "curl", "jq", "openssl", "prometheus", "promtool")
END = "@@ that was one of them @@"
# What the output of a section must have: more than that no command failed.
EXPECTED = {
    "Install": [r"^hippodrome \d", '"completion_tokens": ?16'],
    "Switch it on": ["401$", '"completion_tokens": ?16'],
    "Reload": ['"id": ?"h3-demo"'],
    "Logs": ['"event": ?"reload"', '"route": "/v1/models"', '"key": "app"'],
    "Replace a model": ['"name": ?"h3-demo-2","version": ?"1","state": ?"READY"'],
    "Prometheus": ["is valid prometheus config", r"^  SUCCESS$", '"job":"hippodrome"'],
    "Capacity": ["1229760 bytes per sequence", "1536 bytes per token"],
}


def sections():
    """[(title, [block])]: what is indented by four spaces below each heading."""
    with open(os.path.join(ROOT, "docs", "operate.md")) as file:
        parts = re.split(r"^##? (.*)$", file.read(), flags=re.M)
    for title, text in zip(parts[1::2], parts[2::2]):
        blocks = re.findall(r"((?:^    .*\n|^\n(?=    ))+)", text, re.M)
        yield title, [re.sub(r"^    ", "", block, flags=re.M).strip("\n") for block in blocks]


def run_all(run, report):
    """`run(script)` gives the status and the output. All are run in one shell, as a reader would; the first
    that fails ends it."""
    steps = [(title, block) for title, blocks in sections() for block in blocks]
    assert {title for title, _ in steps} >= set(EXPECTED), EXPECTED
    begin = time.monotonic()
    status, output = run("set -e\n" + "\n".join(f"{block}\necho {END}" for _, block in steps))
    outputs = output.split(END + "\n")
    said = {}
    for (title, block), output in zip(steps, outputs):
        report.append("\n".join("# " + line for line in block.splitlines()) + "\n" + output.replace("/root/", "~/"))
        said[title] = said.get(title, "") + output
    if status != 0 or len(outputs) != len(steps) + 1:
        raise AssertionError(f"status {status} in\n{report[-1]}")
    for title, patterns in EXPECTED.items():
        for pattern in patterns:
            if not re.search(pattern, said[title], re.M):
                raise AssertionError(f"{title}: no {pattern} in\n{said[title]}")
    count = sum(len(re.findall(r"(?<!\\)\n(?! )", block + "\n")) for _, block in steps)
    report.append(f"{count} commands passed in {time.monotonic() - begin:.0f} s")


# ---- The short form


class Places:
    """A folder that stands for the machine: what is /etc there is etc in it, and so on."""

    def __init__(self, work):
        self.work = work
        ports = os.environ.get("OPERATE_PORTS")
        self.ports = ports.split() if ports else list(map(str, free_ports(len(PORTS))))

    def here(self, text):
        text = re.sub(r"(?<![\w.])/(etc/(?:hippodrome|prometheus|grafana|logrotate\.d)|root|srv|"
                      r"usr/share/hippodrome|var/(?:log|lib)/\w+)\b", rf"{self.work}/\1", text)
        ports = dict(zip(PORTS, self.ports))
        return re.sub(r"(?<=:)(" + "|".join(PORTS) + r")\b", lambda found: ports[found[1]], text)

    def path(self, name):
        return os.path.join(self.work, name)

    def environment(self):
        """Of commands: no proxy, and stand-ins before the machine's programs."""
        kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        return {**kept, "PATH": self.path("bin") + ":" + kept["PATH"],
                "OPERATE_PORTS": " ".join(self.ports), "HOME": self.path("root")}


class Services:
    """Stands for systemctl: services are processes, whose numbers are in files."""

    def __init__(self, places):
        self.places = places
        with open(os.path.join(ROOT, "deploy", "systemd", "hippodrome.service")) as file:
            start = re.search(r"^ExecStart=/usr/bin/(.*)$", file.read(), re.M)[1]
        self.commands = {
            "hippodrome": places.here(start).split(),
            "prometheus": ["prometheus", "--config.file", places.here("/etc/prometheus/prometheus.yml"),
                           "--storage.tsdb.path", places.path("prometheus-data"),
                           "--web.listen-address", places.here("127.0.0.1:9090")]}

    def number(self, name):
        try:
            with open(self.places.path(f"run/{name}")) as file:
                return int(file.read())
        except FileNotFoundError:
            return None

    def start(self, name):
        with open(self.places.path(f"run/{name}.log"), "a") as log:
            process = subprocess.Popen(self.commands[name], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, start_new_session=True, cwd=self.places.work)
        with open(self.places.path(f"run/{name}"), "w") as file:
            file.write(str(process.pid))

    def stop(self, name):
        number = self.number(name)
        if number is None:
            return
        os.kill(number, signal.SIGTERM)
        while os.path.exists(f"/proc/{number}") and not self.is_dead(number):
            time.sleep(0.02)
        os.remove(self.places.path(f"run/{name}"))

    @staticmethod
    def is_dead(number):
        """Whoever started it may have gone."""
        try:
            with open(f"/proc/{number}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    def control(self, verb, name):
        if verb == "stop":
            self.stop(name)
        elif verb in ("start", "restart", "enable"):
            self.stop(name)
            self.start(name)
        elif verb in ("reload", "kill"):
            os.kill(self.number(name), signal.SIGHUP)
        elif verb == "is-active":
            number = self.number(name)
            return 0 if number and not self.is_dead(number) else 3
        else:
            raise SystemExit(f"systemctl {verb} has no stand-in")
        return 0


def stand_in(work, arguments):
    """What the stand-ins for systemctl and journalctl do."""
    services = Services(Places(work))
    program, *words = [word for word in arguments if not word.startswith("--")]
    if program == "systemctl":
        verb, *names = words
        if verb == "daemon-reload":
            return 0
        return max(services.control(verb, name.removesuffix(".service")) for name in names)
    name = words[words.index("-u") + 1]
    with open(services.places.path(f"run/{name}.log")) as file:
        sys.stdout.write(file.read())
    return 0


def executable(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def prepare(work, build):
    places = Places(work)
    prefix = places.path("installed")
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    for folder in ("bin", "run", "root", "srv", "etc/hippodrome", "etc/prometheus", "etc/logrotate.d",
                   "var/log/hippodrome", "var/lib/prometheus", "usr/share"):
        os.makedirs(places.path(folder))
    shutil.copytree(os.path.join(prefix, "share", "hippodrome"), places.path("usr/share/hippodrome"),
                    ignore=shutil.ignore_patterns("proto"))
    shutil.copy(os.path.join(prefix, "share/hippodrome/systemd/config.json"), places.path("etc/hippodrome"))
    for folder in ("etc/hippodrome", "usr/share/hippodrome"):
        for at, _, names in os.walk(places.path(folder)):
            for name in names:
                path = os.path.join(at, name)
                os.chmod(path, 0o644)
                if name in ("config.json", "prometheus.yml", "targets.json") and "models" not in at:
                    with open(path) as file:
                        # Nobody waits for a quarter of a minute here.
                        text = places.here(file.read()).replace("_interval: 15s", "_interval: 1s")
                    with open(path, "w") as file:
                        file.write(text)
    os.symlink(os.path.join(prefix, "bin", "hippodrome"), places.path("bin/hippodrome"))
    for name in ("systemctl", "journalctl"):
        executable(places.path("bin/" + name),
                   f"#!/bin/sh\nexec {sys.executable} -B {os.path.abspath(__file__)} "
                   f"--stand-in {work} {name} \"$@\"\n")
    for name in ("apt-get", "chgrp", "chown", "logrotate"):
        executable(places.path("bin/" + name), "#!/bin/sh\n")
    return places


def short_form(build, report):
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        print(f"missing: {' '.join(missing)}; tools/deps --checks installs them")
        return 77
    with tempfile.TemporaryDirectory(prefix="operate-") as work:
        places = prepare(work, build)
        services = Services(places)

        def run(script):
            done = subprocess.run(["bash", "-c", places.here(script)], cwd=places.path("root"), text=True,
                                  env=places.environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
            return done.returncode, done.stdout

        try:
            run_all(run, report)
        except AssertionError:
            for name in services.commands:
                path = places.path(f"run/{name}.log")
                if os.path.exists(path):
                    with open(path) as file:
                        print(f"-- {name} said:\n{file.read()[-5000:]}")
            raise
        finally:
            for name in services.commands:
                services.stop(name)
    return 0


# ---- The long form


def long_form(package, report):
    from testing import fresh_root
    with tempfile.TemporaryDirectory(prefix="operate-") as work:
        root = fresh_root.FreshRoot(os.path.join(work, "debian"), ["systemd", "dbus", "ca-certificates"])
        shutil.copy(package, root.path("root"))
        # The system has no network: apt-get finds there what it would fetch.
        install = next(block for _, blocks in sections() for block in blocks if "apt-get install" in block)
        install = next(line for line in install.splitlines() if "apt-get install" in line)
        root.run(["sh", "-ec", "apt-get -qq update; rm -f /etc/apt/apt.conf.d/docker-clean; cd /root; "
                  + install.replace("install", "install --download-only")])
        system = fresh_root.BootedSystem(root)
        try:
            run_all(lambda script: system.call(["bash", "-c", "cd /root\n" + script], 900), report)
            check_confinement(system, report)
        except AssertionError:
            print(system.call(["journalctl", "--no-pager", "-n", "100"])[1])
            raise
        finally:
            system.stop()
    return 0


def check_confinement(system, report):
    """What the kernel says of the service that systemd started."""
    script = ("pid=$(systemctl show -p MainPID --value hippodrome); cat /proc/$pid/status; "
              "ps -o user= -p $pid 2>/dev/null || stat -c %U /proc/$pid; "
              "nsenter -t $pid -m touch /usr/x 2>&1 || true; nsenter -t $pid -m ls /home /dev")
    status, said = system.call(["bash", "-ec", script])
    for pattern in (r"^Seccomp:\s+2$", r"^NoNewPrivs:\s+1$", r"^CapEff:\s+0000000000000000$",
                    r"^CapBnd:\s+0000000000000000$", r"^hippodrome$", "Read-only file system"):
        assert status == 0 and re.search(pattern, said, re.M), (pattern, said)
    report.append("# the service's process\n" + "\n".join(
        line for line in said.splitlines() if re.match("Seccomp|NoNewPrivs|Cap|Uid|hippodrome|touch", line)))


def main():
    if sys.argv[1] == "--stand-in":
        return stand_in(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", metavar="DEB")
    parser.add_argument("--report")
    parser.add_argument("build", nargs="?")
    arguments = parser.parse_args()
    report = []
    try:
        if arguments.long:
            return long_form(os.path.abspath(arguments.long), report)
        return short_form(arguments.build, report)
    finally:
        if arguments.report:
            with open(arguments.report, "w") as file:
                file.write("\n".join(report) + "\n")


if __name__ == "__main__":
    sys.exit(main())
