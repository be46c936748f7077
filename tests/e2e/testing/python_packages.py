"""Packages of tests/requirements.txt, which Debian does not have or not as new."""

import os
import pathlib
import sys

_FOLDER = pathlib.Path(__file__).resolve().parents[3] / "build" / "python"


def need():
    """Goes on as build/python, which has them; before they are imported. The exit status is 77 if it is not there."""
    python = _FOLDER / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == _FOLDER.resolve():
        return
    if not os.access(python, os.X_OK):
        print("there is no build/python; tools/deps --checks makes it")
        sys.exit(77)
    os.execv(python, [str(python), "-B", *sys.argv])
