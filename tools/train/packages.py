"""Fetches packages from Debian and PyPI by their names and unpacks them, installing nothing."""

import glob
import os
import subprocess
import sys
import zipfile


class PackageError(RuntimeError):
    """A package cannot be had, or a program that fetches it is missing."""


def run(command, directory=None):
    """Runs a program quietly. The error is one line, the first that it calls an error itself."""
    try:
        done = subprocess.run(command, cwd=directory, env=os.environ | {"LC_ALL": "C"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise PackageError(f"there is no program {command[0]}") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("E: ", "ERROR: "))] or lines[-1:]
        reason = errors[0] if errors else f"it ended with {done.returncode}"
        raise PackageError(f"{' '.join(command[:4])} ..: {reason}")


def fetch_debian(names, directory):
    """Unpacks Debian packages into `directory`, which afterwards holds their usr and so on."""
    run(["apt-get", "-q", "download", *names], directory)
    for name in names:
        packages = glob.glob(os.path.join(directory, name + "_*.deb"))
        if len(packages) != 1:
            raise PackageError(f"apt-get download {name}: it left {len(packages)} packages")
        run(["dpkg-deb", "-x", packages[0], directory])


def download(kind, requirement, directory):
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind, ":all:", "--dest",
         directory, requirement])


def fetch_wheel(requirement, directory):
    """Unpacks a wheel of PyPI into `directory`."""
    download("--only-binary", requirement, directory)
    for wheel in glob.glob(os.path.join(directory, "*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory)


def fetch_source(requirement, directory):
    """Leaves a source package of PyPI in `directory`, NAME-VERSION.tar.gz, for what its wheel
    lacks. pip runs its setup.py, to ask for its name."""
    download("--no-binary", requirement, directory)
