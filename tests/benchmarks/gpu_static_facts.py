"""What the compiled kernels are, without a GPU: registers, spills, shared memory, how many warps of a multiprocessor
that leaves room for, and their instructions by class, of the whole kernel and of its longest innermost loop.

  gpu_static_facts.py MODULE [--csv FILE]

MODULE: build/release/bin/libhippodrome_cuda.so. cuobjdump and nvdisasm must be in PATH; where the CUDA toolkit lacks
them: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm. A minute for each architecture. The exit status is 1 where
a kernel spills, or touches global memory before it waits for the kernels before (griddepcontrol.wait).
"""

import argparse
import csv
import re
import subprocess
import sys

# Of a multiprocessor of sm_80 and sm_90, from the CUDA programming guide: technical specifications.
REGISTERS, WARPS, BLOCKS = 65536, 64, 32
SHARED = {"sm_80": 164 << 10, "sm_90a": 228 << 10}
REGISTER_UNIT = 256          # in which registers are given to a warp
WARP_UNIT = 4                # in which warps are given room

# What an instruction waits for or keeps busy, by the beginnings of their names.
CLASSES = {
    "tensor": ("HMMA", "IMMA", "HGMMA"),
    "f32": ("FFMA", "FADD", "FMUL", "FMNMX", "FSETP", "FSEL"),
    "f16": ("HFMA2", "HADD2", "HMUL2", "HMNMX2"),
    "f64": ("DFMA", "DADD", "DMUL", "DSETP"),
    "special": ("MUFU", "F2F", "I2F", "F2I", "FRND"),
    "global": ("LDG", "STG", "ATOMG", "RED", "LDGSTS"),
    "shared": ("LDS", "STS", "LDSM", "ATOMS"),
    "local": ("LDL", "STL"),
    "warp": ("SHFL", "VOTE", "BAR", "WARPSYNC", "REDUX", "MATCH"),
}
KINDS = (*CLASSES, "other")
# Of shared memory 1,024 bytes are the system's. "loop_": of the longest loop that has none in it.
COLUMNS = ("kernel", "architecture", "registers", "stack_bytes", "static_shared_bytes", "threads", "warps_percent",
           "instructions", *KINDS, "innermost_loops", "loop_instructions", *("loop_" + name for name in KINDS))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short(name):
    """Of a kernel, without namespaces and parameters."""
    name = re.sub(r"\(anonymous namespace\)::|hippodrome::|cuda::|^void ", "", name)
    depth, end = 0, len(name)
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            end = i
            break
    return name[:end]


def by_function(text, start):
    """(architecture, mangled name, lines) of each function, which begins with a line that matches `start`."""
    architecture, name, lines = None, None, []
    for line in text.splitlines():
        if found := re.match(r"arch = (\S+)", line):
            if name:
                yield architecture, name, lines
            architecture, name = found[1], None
        elif found := re.match(start, line):
            if name:
                yield architecture, name, lines
            name, lines = found[1], []
        elif name:
            lines.append(line)
    if name:
        yield architecture, name, lines


def resources(module):
    """(architecture, name): registers, bytes on the stack, bytes of static shared memory."""
    found = {}
    for architecture, name, lines in by_function(output("cuobjdump", "--dump-resource-usage", module),
                                                 r"\s*Function (\w+):"):
        numbers = dict(re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", lines[0]))
        found[architecture, name] = tuple(int(numbers[key]) for key in ("REG", "STACK", "SHARED"))
    return found


def most_threads(module):
    """(architecture, name): what __launch_bounds__ says."""
    found = {}
    for architecture, name, lines in by_function(output("cuobjdump", "-elf", module), r"\.nv\.info\.(\w+)$"):
        text = "\n".join(lines)
        if bounds := re.search(r"EIATTR_MAX_THREADS\s+Format:\s+\S+\s+Value:\s+0x(\w+) 0x(\w+) 0x(\w+)", text):
            sizes = [int(size, 16) for size in bounds.groups()]
            found[architecture, name] = sizes[0] * sizes[1] * sizes[2]
    return found


def kind(opcode):
    base = opcode.split(".")[0]
    return next((name for name, begins in CLASSES.items() if base in begins), "other")


def innermost_loops(code):
    """Of [(address, opcode, target of a branch or None)]: the instructions of each loop that has none in it."""
    loops = [(target, address) for address, _, target in code if target is not None and target < address]
    inner = [loop for loop in loops if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1]
                                               for other in loops)]
    return [[opcode for address, opcode, _ in code if first <= address <= last] for first, last in inner]


def instructions(lines):
    code = []
    for line in lines:
        if found := re.match(r"\s+/\*(\w{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*?);", line):
            target = re.search(r"(0x\w+)\s*$", found[3]) if found[2].startswith("BRA") else None
            code.append((int(found[1], 16), found[2], int(target[1], 16) if target else None))
    return code


def touches_early(code):
    """Whether an access to global memory comes before the wait of a dependent launch, where there is one."""
    opcodes = [opcode for _, opcode, _ in code]
    return "ACQBULK" in opcodes and any(kind(opcode) == "global" for opcode in opcodes[:opcodes.index("ACQBULK")])


def warps_percent(architecture, registers, shared, threads):
    """Of the warps that a multiprocessor holds at most, by registers, threads and static shared memory."""
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    by_registers = REGISTERS // of_a_warp // WARP_UNIT * WARP_UNIT // warps
    return 100 * min(by_registers, SHARED[architecture] // max(shared, 1), WARPS // warps, BLOCKS) * warps / WARPS


def counts(opcodes, prefix=""):
    kinds = [kind(opcode) for opcode in opcodes]
    return {prefix + "instructions": len(kinds), **{prefix + name: kinds.count(name) for name in KINDS}}


def facts(module):
    known, bounds = resources(module), most_threads(module)
    names = sorted({name for _, name in known})
    plain = dict(zip(names, subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True,
                                           text=True).stdout.splitlines()))
    for architecture, name, lines in by_function(output("cuobjdump", "-sass", module), r"\s+Function : (\w+)"):
        registers, stack, shared = known[architecture, name]
        threads = bounds.get((architecture, name), 1024)
        code = instructions(lines)
        if touches_early(code):
            sys.exit(f"{short(plain[name])} ({architecture}): touches global memory before it waits")
        loops = innermost_loops(code)
        yield {"kernel": short(plain[name]), "architecture": architecture, "registers": registers,
               "stack_bytes": stack, "static_shared_bytes": shared, "threads": threads,
               "warps_percent": round(warps_percent(architecture, registers, shared, threads)),
               **counts(opcode for _, opcode, _ in code), "innermost_loops": len(loops),
               **counts(max(loops, key=len, default=[]), "loop_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("--csv")
    given = parser.parse_args()
    rows = sorted(facts(given.module), key=lambda row: (row["kernel"], row["architecture"]))
    if given.csv:
        with open(given.csv, "w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    spills = [row for row in rows if row["stack_bytes"]]
    for row in spills:
        print(f"{row['kernel']} ({row['architecture']}): {row['stack_bytes']} bytes on the stack")
    print(f"{len(rows)} kernels, {len(spills)} with bytes on the stack")
    return 1 if spills else 0


if __name__ == "__main__":
    sys.exit(main())
