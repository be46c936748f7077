#!/usr/bin/env python3
"""Finds includes against the order of the folders that CMake states, and headers that are neither shared
nor a contract. tools/lint calls it.

  tools/includes.py [ROOT]
  tools/includes.py --closure FILE     # lists what FILE includes of this repository, directly or not

hippodrome_folders(PARENT FOLDER...) in a CMakeLists.txt names the folders of sources in PARENT, which
is relative to that file, each after those that it includes. A source may include what lies in its own
folder, in those named before it, and beside the folder that holds them all. Every folder with sources
must be named where its neighbours are.

A header exists because several files include it, or because it is a contract: then it is listed in
target_sources(TARGET PUBLIC FILE_SET HEADERS ...) of its target. Neither tests nor the source of the
same name (x.cc of x.h) count as such files.
"""
import collections
import pathlib
import re
import subprocess
import sys

SOURCES = {".h", ".cc", ".cu", ".cuh"}
ROOMS = {"clients", "engine", "kernels", "server", "tools"}


def tracked(root):
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True)
    return [pathlib.PurePosixPath(line) for line in listed.stdout.splitlines()]


def stated_orders(root, files):
    """Parent folder to the names of its folders, in order."""
    orders = {}
    for file in files:
        if file.name != "CMakeLists.txt":
            continue
        text = (root / file).read_text()
        for call in re.findall(r"^hippodrome_folders\(([^)]*)\)", text, re.M):
            parent, *folders = call.split()
            orders[file.parent / parent] = folders
    return orders


def unnamed_folders(sources, orders):
    present = collections.defaultdict(set)
    for source in sources:
        for folder in source.parents:
            if folder.parent in orders and folder != folder.parent:
                present[folder.parent].add(folder.name)
    for parent, folders in sorted(present.items()):
        for folder in sorted(folders - set(orders[parent])):
            yield f"{parent / folder}: not named in hippodrome_folders() of {parent}"


def where_they_part(one, other):
    """The folder that holds both, and the names below it that lead to each."""
    for i, (a, b) in enumerate(zip(one.parts, other.parts)):
        if a != b:
            return pathlib.PurePosixPath(*one.parts[:i]), a, b
    return None


def wrong_includes(root, sources, orders):
    known = set(sources)
    for source in sources:
        for include in re.findall(r'^#include "(.*)"', (root / source).read_text(), re.M):
            included = pathlib.PurePosixPath(include)
            parting = where_they_part(source, included) if included in known else None
            if parting is None or parting[0] not in orders:
                continue
            parent, here, there = parting
            order = orders[parent]
            if here in order and there in order and order.index(there) > order.index(here):
                yield f"{source}: includes {include}, but {parent / there} comes after {parent / here}"


def includers(root, sources):
    """Included file to those that include it, but for its own source."""
    found = collections.defaultdict(set)
    for source in sources:
        for include in re.findall(r'^ *# *include "(.*)"', (root / source).read_text(), re.M):
            included = pathlib.PurePosixPath(include)
            if included.with_suffix("") != source.with_suffix(""):
                found[included].add(source)
    return found


def listed_headers(root, files):
    """Header to the CMakeLists.txt that lists it as public."""
    listed = {}
    for file in files:
        if file.name != "CMakeLists.txt":
            continue
        text = (root / file).read_text()
        for names in re.findall(r"FILE_SET HEADERS\s[^)]*?\sFILES\s([^)]*)\)", text):
            listed.update((file.parent / name, file) for name in names.split())
    return listed


def lonely_headers(root, files, sources):
    """Headers for which there is no reason, and listed ones that do not exist."""
    listed = listed_headers(root, files)
    for header, file in sorted(listed.items()):
        if header not in sources:
            yield f"{file}: lists {header}, which does not exist"
    found = includers(root, sources)
    for header in sources:
        if header.parts[0] not in ROOMS or header.suffix not in (".h", ".cuh"):
            continue
        used_by = [file for file in found[header] if file.parts[0] != "tests"]
        # Kernels are apart from their launches, x.cuh from x.cu.
        if not found[header] and not (header.suffix == ".cuh" and header.with_suffix(".cu") in sources):
            yield f"{header}: nobody includes it"
        elif len(used_by) == 1 and header not in listed:
            yield (f"{header}: only {used_by[0]} includes it: merge it, or list it among its target's "
                   "public headers")


def closure(root, sources, file):
    """The sources that a file includes, directly or through others, but itself."""
    known = set(sources)
    found, left = set(), [file]
    while left:
        text = (root / left.pop()).read_text()
        for include in re.findall(r'^#\s*include "(.*)"', text, re.M):
            included = pathlib.PurePosixPath(include)
            if included in known and included not in found:
                found.add(included)
                left.append(included)
    return found - {file}


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--closure":
        root = pathlib.Path(".")
        print("\n".join(sorted(map(str, closure(root, tracked(root), pathlib.PurePosixPath(sys.argv[2]))))))
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    files = tracked(root)
    sources = [file for file in files if file.suffix in SOURCES]
    orders = stated_orders(root, files)
    faults = [*unnamed_folders(sources, orders), *wrong_includes(root, sources, orders),
              *lonely_headers(root, files, sources)]
    print("\n".join(faults), end="\n" if faults else "")
    print(f"includes: {len(sources)} sources, {len(orders)} ordered folders, {len(faults)} faults")
    return 1 if faults or not orders else 0


if __name__ == "__main__":
    sys.exit(main())
