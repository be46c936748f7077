"""What fault_shim.cc does to a program: memory that runs out, a full disk, a clock that jumps."""

import contextlib
import mmap
import os
import struct
import tempfile


class Faults:
    """The shim's side of programs that are started while it is loaded()."""

    def __init__(self, shim):
        self.file = tempfile.NamedTemporaryFile()
        self.file.write(struct.pack("qqq", 0, -1, 0))
        self.file.flush()
        self.shared = mmap.mmap(self.file.fileno(), 24)
        self.environment = {"LD_PRELOAD": os.path.abspath(shim), "HIPPODROME_FAULTS": self.file.name}

    @contextlib.contextmanager
    def loaded(self):
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name in self.environment:
                del os.environ[name]

    def jump(self, seconds):
        self.shared[:8] = struct.pack("q", seconds)

    def fail(self, allocation):
        """The one after so many; -1: none."""
        self.shared[8:16] = struct.pack("q", allocation)

    def failed(self):
        return struct.unpack("q", self.shared[8:16])[0] < 0

    def fill_disk(self, full):
        self.shared[16:] = struct.pack("q", full)
