"""What counts predict for a GPU (bench --device model:...), beside what it took.

  gpu_predicted.py PROGRAM [RESULTS]

PROGRAM: hippodrome or hippodrome_bench; RESULTS: of `tools/gpu run`, by default gpu-results.json here. Prints a table in
Markdown: both values, their ratio, and how much of the limit each is.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

MODELS = ("A100", "H100", "H200")  # that are modelled, as parts of the names of devices


def predicted(program, command, model):
    """The results of a command of `hippodrome` on a modelled device, by name, length and batch."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = re.sub(r"--(device|json) \S+", "", command).split()[1:]
        ran = subprocess.run([program, *words, "--device", f"model:{model.lower()}", "--json", file.name],
                             capture_output=True, text=True)
        if ran.returncode != 0:
            return {}
        return {key(result): result for result in json.load(file)["results"]}


def key(result):
    return result["name"], result["length"], result["batch"]


def rows(program, results):
    model = next((name for name in MODELS if name in results["gpu"]), None)
    if model is None:
        sys.exit(f"no model of {results['gpu']}")
    for name, part in results.items():
        outcome = part.get("outcome") if isinstance(part, dict) else None
        if not isinstance(outcome, dict):
            continue
        found = predicted(program, outcome["command"], model)
        for result in outcome["results"]:
            if key(result) in found and result["fraction"] > 0:
                yield name, result, found[key(result)]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else pathlib.Path(__file__).parent / "gpu-results.json"
    with open(path) as file:
        results = json.load(file)
    print(f"| {results['gpu'].split(',')[0]} | | length | batch | took | predicted | unit | predicted / took | of the limit | predicted |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    for part, took, model in rows(sys.argv[1], results):
        print(f"| {part} | {took['name']} | {took['length']} | {took['batch']} | {took['value']:.4g} | {model['value']:.4g} "
              f"| {took['unit']} | {model['value'] / took['value']:.2f} | {took['fraction']:.0%} | {model['fraction']:.0%} |")


if __name__ == "__main__":
    main()
