"""Debian 12 in a folder, with nothing but what is asked for: to install into, to build in, and to boot.
For root; mmdebstrap makes it from Debian's mirror."""

import os
import shutil
import signal
import subprocess
import time

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Failed(Exception):
    pass


def run(command, **how):
    """What the command prints; with its end, when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, errors="replace", **how)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)[:400]}\nstatus {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


class FreshRoot:
    def __init__(self, folder, packages=(), copy_of=None):
        """As another one before anything was done in it, `copy_of`, or with `packages` beside the least."""
        self.folder = folder
        self.archive = copy_of.archive if copy_of else folder + ".tar"
        if copy_of is None:
            include = [f"--include={','.join(packages)}"] if packages else []
            run(["mmdebstrap", "--variant=minbase", *include, "bookworm", self.archive])
        os.makedirs(folder)
        run(["tar", "-C", folder, "-xf", self.archive])
        shutil.copy("/etc/resolv.conf", os.path.join(folder, "etc", "resolv.conf"))

    def path(self, inside):
        return os.path.join(self.folder, inside.lstrip("/"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def mounts(self, read_only=False):
        """Lines of a shell that mount what programs expect; in a namespace of mounts of its own."""
        lines = ["mount --make-rprivate /", f"mount --bind {self.folder} {self.folder}",
                 f"cd {self.folder}", "mount -t proc proc proc",
                 "mount -t tmpfs -o mode=755 tmpfs dev", "mkdir dev/pts dev/shm",
                 "mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts",
                 "ln -s pts/ptmx dev/ptmx", "ln -s /proc/self/fd dev/fd",
                 "mount -t tmpfs tmpfs dev/shm"]
        for device in DEVICES:
            lines += [f"touch dev/{device}", f"mount --bind /dev/{device} dev/{device}"]
        if read_only:
            lines.append(f"mount -o remount,bind,ro {self.folder} {self.folder}")
        return lines

    def inside(self, arguments, user="0:0", directory="/", environment=(), private_network=False,
               read_only=False):
        """The command line that runs `arguments` in there: the first process of a namespace of its own."""
        script = ["set -e", *self.mounts(read_only)]
        if private_network:
            script.append("ip link set lo up")
        # Changes to the directory after the root, as the user, who may be none that it has a name for.
        script.append(f'exec chroot --userspec={user} --groups= . env -i '
                      f'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin '
                      f'{" ".join(environment)} sh -c \'cd "$0" && exec "$@"\' {directory} "$@"')
        namespaces = ["--mount", "--pid", "--fork", "--kill-child"]
        if private_network:
            namespaces.append("--net")
        return ["unshare", *namespaces, "bash", "-c", "\n".join(script), "inside", *arguments]

    def run(self, arguments, **where):
        return run(self.inside(arguments, **where))


class BootedSystem:
    """A FreshRoot with systemd (packages systemd and dbus), whose systemd runs as its first process, with a
    network of its own that reaches nobody."""

    def __init__(self, root, cgroup="hippodrome-test"):
        self.cgroup = os.path.join(self.unified_hierarchy(), f"{cgroup}-{os.getpid()}")
        os.mkdir(self.cgroup)
        script = ["set -e", f"echo $$ >{self.cgroup}/cgroup.procs", *root.mounts(),
                  "mount -t sysfs -o ro sysfs sys", "mount -t tmpfs tmpfs run",
                  "mount -t tmpfs tmpfs tmp",
                  # Of the namespace: its top is the group that was made here.
                  "exec unshare --cgroup bash -ec '"
                  "mountpoint -q sys/fs/cgroup && umount sys/fs/cgroup; "
                  "mount -t cgroup2 cgroup2 sys/fs/cgroup; ip link set lo up; "
                  "mkdir -p .before; pivot_root . .before; umount -l /.before; "
                  "exec env -i container=other /lib/systemd/systemd --system'"]
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child",
             "bash", "-c", "\n".join(script)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.init = None
        for _ in range(300):
            if self.running():
                return
            time.sleep(0.1)
        raise Failed("systemd does not run")

    @staticmethod
    def unified_hierarchy():
        with open("/proc/mounts") as file:
            for line in file:
                _, where, kind, *_ = line.split()
                if kind == "cgroup2":
                    return where
        raise Failed("no cgroup2 is mounted here")

    def running(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            children = file.read().split()
        self.init = children[0] if children else None
        return self.init and self.call(["systemctl", "is-system-running"])[1].strip() in (
            "running", "degraded")

    def command(self, arguments):
        return ["nsenter", "--target", self.init, "--all", "env", "-i", "HOME=/root",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *arguments]

    def call(self, arguments, timeout=300):
        """The status, and what the command prints."""
        done = subprocess.run(self.command(arguments), stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=timeout)
        return done.returncode, done.stdout

    def stop(self):
        # As systemd takes it for a power off.
        os.kill(int(self.init), signal.SIGRTMIN + 4)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.kill(int(self.init), signal.SIGKILL)
            self.process.wait()
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            os.rmdir(folder)
