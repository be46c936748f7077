"""Programs that run while a test looks at them."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time


def read(path):
    """A line of /proc; nothing where it is gone, or no one's to read."""
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""


class Process:
    """A program that runs until stop()."""

    def __init__(self, command, log, **how):
        """`log`: the path of a file for its output; `how`: as subprocess.Popen takes it."""
        self.log = open(log, "w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, **how)
        self.pid = self.process.pid

    def said(self):
        with open(self.log.name) as file:
            return file.read()

    def listens(self, name):
        """The address at which the program says that it serves `name`."""
        for _ in range(600):
            found = re.search(rf"^{name} listening on (.*)$", self.said(), re.M)
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError("the program does not listen: " + self.said())

    def status(self, field):
        """A field of /proc/PID/status, in bytes."""
        with open(f"/proc/{self.pid}/status") as file:
            return int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.M)[1]) * 1024

    def resident(self):
        return self.status("VmRSS")

    def forget_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")

    def peak(self):
        """The most that was resident since forget_peak()."""
        return self.status("VmHWM")

    def processor_seconds(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ended(self, seconds=150):
        """The exit status, once there is one; what its threads wait for where it does not end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            threads = [f"{read(task / 'comm')}: {read(task / 'wchan')}"
                       for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir()]
            self.process.kill()
            raise RuntimeError(f"the program does not end: {threads}: " + self.said()) from None

    def stop(self):
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        code = self.ended()
        self.log.close()
        return code
