#!/usr/bin/env python3
"""Compares what two builds of the program write, byte by byte, on the models of this repository.

  tests/same_bytes.py COMMIT      builds that commit in build/same_bytes; this tree is in build/release
  tests/same_bytes.py OLD NEW     two programs

Both convert, run forward in all modes, generate, take gradients, evaluate, write kernels and train for
200 steps, on one machine, on the CPU. It ends with 1 where a byte differs. Times and folders, which the
training log and some messages have, are left out.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "same_bytes"
DEMOS = "deploy/models"
H3 = "tests/testdata/h3_golden"
BIGS = "tests/testdata/bigs_golden"


def write_ids(path, vocabulary, rows, length, **more):
    """A safetensors file with random input_ids I64 [rows, length], and more arrays of the same type."""
    chance = random.Random(7)
    arrays = {"input_ids": ([rows, length], [chance.randrange(vocabulary)
                                             for _ in range(rows * length)])} | more
    header, data = {}, b""
    for name, (shape, values) in arrays.items():
        bytes_ = struct.pack(f"<{len(values)}q", *values)
        header[name] = {"dtype": "I64", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_inputs():
    """What both programs read, as far as it is not in the repository."""
    chance = random.Random(9)
    write_ids(WORK / "h3.safetensors", 60, 2, 257)
    write_ids(WORK / "demo.safetensors", 4000, 2, 600)
    write_ids(WORK / "mlm.safetensors", 300, 2, 64,
              labels=([2, 64], [chance.randrange(300) for _ in range(128)]))
    write_ids(WORK / "classes.safetensors", 200, 2, 64, labels=([2], [0, 1]))
    lines = (ROOT / "LICENSE").read_text().split("\n\n")
    (WORK / "sst2.tsv").write_text("sentence\tlabel\n" + "".join(
        f"{' '.join(line.split())[:200]}\t{i % 2}\n" for i, line in enumerate(lines) if line.strip()))


def training_runs(out):
    """The run files of two short trainings, with their programs' folders."""
    common = {"batch": 8, "micro_batch": 4, "steps": 200, "seed": 3, "threads": 2, "log_every": 5,
              "checkpoint_every": 0, "optimizer": {"rate": 1e-3, "weight_decay": 0.1, "clip": 1.0},
              "schedule": {"kind": "cosine", "warmup": 10}}
    decoder = common | {
        "output": "decoder", "objective": "induction_head", "weights": "bf16",
        "data": {"vocabulary": 20, "sequence": 30}, "dropout": {"embedding": 0.1},
        "model": {"config": {"model_type": "h3", "d_model": 32, "n_layer": 2, "d_inner": 64,
                             "vocab_size": 20, "pad_vocab_size_multiple": 1,
                             "ssm_cfg": {"d_state": 16}, "attn_layer_idx": [1],
                             "attn_cfg": {"num_heads": 2}}}}
    encoder = common | {
        "output": "encoder", "objective": "masked_lm", "weights": "f32", "length": 32,
        "data": {"train": "tokens.safetensors"}, "tokenizer": str(ROOT / DEMOS / "bigs-demo"),
        "model": {"config": {"model_type": "BiGS", "hidden_size": 32, "num_hidden_layers": 2,
                             "intermediate_size": 64, "num_ssm": 8, "max_position_embeddings": 32,
                             "vocab_size": 8192}}}
    for run in (decoder, encoder):
        path = out / f"{run['output']}.json"
        path.write_text(json.dumps(run))
        yield ["train", "--config", str(path)]


def commands(out):
    """Name to arguments. Outputs go to `out`."""
    text = str(ROOT / "LICENSE")
    yield "encode", ["tokenizer", "encode", "--tokenizer", f"{DEMOS}/bigs-demo", "--input", text,
                     "--output", f"{out}/tokens.safetensors"]
    for file in sorted((ROOT / "tests/testdata/convert").glob("weights*")):
        for dtype in ("f32", "bf16"):
            yield f"convert {file.name} {dtype}", [
                "convert", str(file), "--config", "tests/testdata/convert/config.json", "--dtype",
                dtype, "--out", f"{out}/converted-{file.name}-{dtype}"]
    models = {"h3": H3, "demo": f"{DEMOS}/h3-demo", "mlm": f"{BIGS}/masked_lm",
              "classes": f"{BIGS}/classifier"}
    for name, model in models.items():
        decoder = name in ("h3", "demo")
        for weights in ("f32", "bf16"):
            for mode in ("prefill", "step", "chunked=7", "chunked=64") if decoder else (None,):
                yield f"forward {name} {weights} {mode}", [
                    "forward", "--model", model, "--input", f"{WORK}/{name}.safetensors",
                    "--weights", weights, "--output", f"{out}/{name}-{weights}-{mode}.safetensors",
                    *(["--mode", mode] if mode else [])]
            if name != "demo":
                yield f"gradients {name} {weights}", [
                    "gradients", "--model", model, "--input", f"{WORK}/{name}.safetensors",
                    "--weights", weights, "--output", f"{out}/{name}-{weights}-grad.safetensors"]
        yield f"kernels {name}", ["kernels", "--model", model, "--length", "96", "--output",
                                  f"{out}/{name}-kernels.safetensors"]
        yield f"inspect {name}", ["inspect", model]
    for i, prompt in enumerate(("It was a dark night, and", "Once", 'He said: "no".')):
        for weights in ("f32", "bf16"):
            for heat in ("0", "0.8"):
                yield f"generate {i} {weights} {heat}", [
                    "generate", "--model", f"{DEMOS}/h3-demo", "--prompt", prompt, "--weights",
                    weights, "--temperature", heat, "--seed", "5", "--max-tokens", "80", "--json"]
    yield "eval perplexity", ["eval", "perplexity", "--model", f"{DEMOS}/h3-demo", "--data", text,
                              "--window", "256"]
    yield "eval sst2", ["eval", "sst2", "--model", f"{DEMOS}/bigs-demo", "--data",
                        f"{WORK}/sst2.tsv"]
    yield "flops", ["inspect", "--flops", "--length", "4096", "--preset", "bigs-4096"]
    for i, run in enumerate(training_runs(out)):
        yield f"train {i}", run


def steady(text, out):
    """Without times and folders."""
    text = text.replace(str(out), "OUT")
    text = re.sub(r'"(seconds|tokens_per_second|fraction_of_limit)": ?[\d.e+-]+', r'"\1": 0', text)
    return re.sub(r"[\d.,]+ (s|seconds|tokens/s|inputs/s|sentences/s)\b", "0 \\1", text)


def outputs(program, out):
    """Name to bytes of all that the program writes."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    found = {}
    for name, arguments in commands(out):
        done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True,
                              env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{program} {' '.join(arguments)}\n{done.stderr}")
        found[f"{name}, what it prints"] = steady(done.stdout, out).encode()
    for path in sorted(p for p in out.rglob("*") if p.is_file()):
        if path.name == "state.json":  # its checksum covers seconds too
            data = json.dumps(json.loads(path.read_text())["state"]["arrays"]).encode()
        elif path.suffix in (".json", ".jsonl"):
            data = steady(path.read_text(), out).encode()
        else:
            data = path.read_bytes()
        if path.name != "loss.svg":  # draws seconds too
            found[str(path.relative_to(out))] = data
    return found


def build(commit):
    """The program of another commit."""
    source = WORK / commit
    if not source.exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
        subprocess.run(["git", "checkout", "--quiet", commit], cwd=source, check=True)
    for command in (["cmake", "--preset", "release", "-DHIPPODROME_CUDA=OFF"],
                    ["cmake", "--build", "--preset", "release", "--target", "hippodrome"]):
        subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    return str(source / "build/release/bin/hippodrome")


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    old = build(sys.argv[1]) if len(sys.argv) == 2 else sys.argv[1]
    new = str(ROOT / "build/release/bin/hippodrome") if len(sys.argv) == 2 else sys.argv[2]
    write_inputs()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        before, after = pool.map(outputs, (old, new), (WORK / "old", WORK / "new"))
    names = sorted(before.keys() | after.keys())
    different = [name for name in names if before.get(name) != after.get(name)]
    for name in different:
        print(f"differs: {name}")
    print(f"{len(names) - len(different)} of {len(names)} outputs are the same bytes")
    return 1 if different or not names else 0


if __name__ == "__main__":
    sys.exit(main())
