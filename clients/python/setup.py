"""Describes the gRPC interface to the package: what protoc makes of ../../proto, as one file of data.

Classes of messages are made of it when the package is imported. Code that protoc generates works with some versions of
the protobuf package alone; the description works with all of them, and an older protoc will do.
"""

import pathlib
import shutil
import subprocess

import setuptools
import setuptools.command.build_py
import setuptools.command.sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parents[1] / "proto"
DESCRIPTION = HERE / "hippodrome_client" / "protocol.binpb"


def describe():
    """Writes the description. A source distribution has it, and has no protos."""
    if not (PROTOS / "hippodrome").is_dir():
        if DESCRIPTION.exists():
            return
        raise SystemExit(f"neither {PROTOS} nor {DESCRIPTION} is there: build in the repository")
    if shutil.which("protoc") is None:
        raise SystemExit("protoc is needed to build this package: apt-get install protobuf-compiler")
    files = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.glob("hippodrome/v1/*.proto"))
    subprocess.run(["protoc", "-I", str(PROTOS), "--include_imports", "--descriptor_set_out", str(DESCRIPTION), *files],
                   check=True)


class BuildPy(setuptools.command.build_py.build_py):
    def run(self):
        describe()
        super().run()


class Sdist(setuptools.command.sdist.sdist):
    def run(self):
        describe()
        super().run()


setuptools.setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
