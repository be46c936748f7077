"""The package of clients/python, built as a wheel, from build/wheels alone."""

import atexit
import pathlib
import shutil
import subprocess
import sys
import tempfile

from testing import python_packages

python_packages.need()

ROOT = pathlib.Path(__file__).resolve().parents[3]
WHEELS = ROOT / "build" / "wheels"
OFFLINE = ("--disable-pip-version-check", "--no-index", "--find-links", str(WHEELS))


def build(folder):
    """The path of the wheel in `folder`. Its sources are copied there, for building writes beside them. The exit status
    is 77 without protoc."""
    if shutil.which("protoc") is None:
        print("there is no protoc; tools/deps installs it")
        sys.exit(77)
    folder = pathlib.Path(folder)
    shutil.copytree(ROOT / "proto", folder / "proto")
    made = shutil.ignore_patterns("build", "*.egg-info", "protocol.binpb", "__pycache__")
    shutil.copytree(ROOT / "clients" / "python", folder / "clients" / "python", ignore=made)
    subprocess.run([sys.executable, "-m", "pip", "-q", "wheel", "--no-build-isolation", "--no-deps", *OFFLINE,
                    "-w", str(folder / "wheel"), str(folder / "clients" / "python")], check=True)
    wheel, = (folder / "wheel").iterdir()
    return wheel


def use():
    """Makes the package importable in this process."""
    folder = tempfile.TemporaryDirectory(prefix="hippodrome-")
    atexit.register(folder.cleanup)
    sys.path.insert(0, str(build(folder.name)))
