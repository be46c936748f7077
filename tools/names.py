#!/usr/bin/env python3
"""Finds names that could mean something else once sources are compiled together. tools/lint calls it.

  tools/names.py BUILD_DIR [FOLDER...]

Sources of a library that tools/unity.cmake unites see each other's unnamed namespaces. A name that
two of them define is an error of the compiler in most cases, but a second overload, or a constant
that hides another of an outer namespace, would silently win. So no two such sources of one library,
whichever of them are compiled together today, may define the same name in unnamed namespaces of the
same namespace, or of one within the other. An alias may be repeated word for word. The sources are
taken as clang-format leaves them: what an unnamed namespace declares begins at the first column.

Nor may two files below the folders define different types of one name in the same namespace: each
compiles by itself, and a program with both takes functions of one for those of the other.
"""
import collections
import json
import pathlib
import re
import sys

TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|enum class|enum|union) (?:alignas\(.*\) )?(\w+)")
ALIAS = re.compile(r"using (?:(\w+) =|[\w:]+::(\w+);)")
OTHER = re.compile(r"(\w+)(?:\(| =|\{|;|\[)")
NO_NAME = ("template", "namespace", "using namespace", "static_assert", "extern", "HWY_")


def declared(line):
    """The name that a line at the first column declares."""
    alias = ALIAS.match(line)
    if alias:
        return alias.group(1) or alias.group(2)
    kind = TYPE.match(line)
    if kind:
        return kind.group(1)
    if line.startswith(NO_NAME):
        return None
    other = OTHER.search(line)
    if other is None or line[:other.start()].endswith("::"):  # of a class, which is a name itself
        return None
    return other.group(1)


def local_names(source):
    """What the source keeps to itself: (namespace, name) to line."""
    names = {}
    outer = ""
    local = False
    for line in pathlib.Path(source).read_text().splitlines():
        named = re.match(r"namespace ([\w:]+) \{", line)
        if named:
            outer = named.group(1)
        elif line == "namespace {":
            local = True
        elif line == "}  // namespace":
            local = False
        elif re.match(r"\w", line) and (local or line.startswith(("static ", "using "))):
            name = declared(line)
            if name:
                names[outer, name] = line
    return names


def meet(one, other):
    """Whether code in one of the namespaces sees the other."""
    return one == other or one.startswith(other + "::") or other.startswith(one + "::")


def clashing(definitions):
    """Sources of which two define a name in namespaces that meet: (namespace, source, line) of each."""
    sources = set()
    for i, (outer, source, line) in enumerate(definitions):
        for other_outer, other_source, other_line in definitions[:i]:
            alias = line.startswith("using ") and line == other_line
            if source != other_source and meet(outer, other_outer) and not alias:
                sources |= {source, other_source}
    return sorted(sources)


def libraries(build):
    """Library to its sources that are compiled together."""
    found = collections.defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unity = pathlib.Path(entry["file"])
        if unity.is_relative_to(build.resolve() / "unity"):
            found[unity.parent.name] += re.findall(r'#include "(.*)"', unity.read_text())
    return found


def shared_types(source):
    """The types that the source defines for all: (namespace, name) to the text."""
    types = {}
    namespaces = []
    lines = pathlib.Path(source).read_text().splitlines()
    for number, line in enumerate(lines):
        named = re.match(r"(?:inline )?namespace ?([\w:]*) ?\{", line)
        if named:
            namespaces.append(named.group(1))
        elif line.startswith("}  // namespace"):
            namespaces.pop()
        kind = re.match(TYPE.pattern + r"(?![\w:<]|.*;$(?<!\};))", line)
        if kind and "" not in namespaces:
            end = next(i for i in range(number, len(lines)) if re.search(r"^\}|\};$", lines[i]))
            types["::".join(namespaces), kind.group(1)] = "\n".join(lines[number:end + 1])
    return types


def types_of_one_name(folders):
    """Namespace::name to the files that define it differently."""
    definitions = collections.defaultdict(dict)
    for folder in folders:
        for source in sorted(pathlib.Path(folder).rglob("*")):
            if source.suffix in (".h", ".cuh", ".cc", ".cu"):
                for name, text in shared_types(source).items():
                    definitions["::".join(name)][str(source)] = text
    return {name: list(of) for name, of in definitions.items() if len(set(of.values())) > 1}


def clashes_of_libraries(build):
    """How many sources were looked at, and how many names clash, which it prints."""
    clashes = count = 0
    for library, sources in libraries(build).items():
        count += len(sources)
        definitions = collections.defaultdict(list)
        for source in sources:
            for (outer, name), line in local_names(source).items():
                definitions[name].append((outer, source, line))
        for name, places in definitions.items():
            clash = clashing(places)
            if clash:
                clashes += 1
                print(f"{library}: {name} is defined in {', '.join(clash)}: "
                      "rename all but one, or hippodrome_compile_alone()")
    return count, clashes


def main():
    build, *folders = map(pathlib.Path, sys.argv[1:])
    count, clashes = clashes_of_libraries(build)
    if count == 0:
        print(f"tools/names.py: no sources compiled together in {build}")
        return 1
    for name, files in types_of_one_name(folders).items():
        clashes += 1
        print(f"{name} is a type in {', '.join(files)}: rename all but one")
    print(f"names: {count} sources compiled together, {clashes} names clash")
    return 1 if clashes else 0


if __name__ == "__main__":
    sys.exit(main())
