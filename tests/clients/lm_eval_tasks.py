#!/usr/bin/env python3
"""lm-evaluation-harness, as it is published, on its own tasks: pointed at a running server by its local-completions
client, it must give what `hippodrome eval lm` gives in process, of the same documents in their published form: the
same choices, likelihoods equal to 1e-4, the same figures. By hand, for it comes from PyPI.

    python3 -m venv venv
    venv/bin/pip install 'lm_eval[api]' 'transformers<5' 'datasets<4' scikit-learn
    venv/bin/python tests/clients/lm_eval_tasks.py build/release/bin/hippodrome [WIKITEXT]

It makes the documents itself (lm_task_files.py), serves deploy/models/h3-demo, and needs no network. WIKITEXT is a
file of WikiText-2 or -103 as published, to be compared too. The output of a run is in lm_eval_tasks.txt.
"""
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  TRANSFORMERS_VERBOSITY="error", LMEVAL_LOG_LEVEL="ERROR")
import lm_eval
from lm_eval.tasks import TaskManager

import lm_task_files
import local_server
from local_server import MODEL, Server, check, read_lines

HIPPODROME = sys.argv[1]
YAMLS = pathlib.Path(lm_eval.__file__).parent / "tasks"
TOLERANCE = 1e-4
# Of --max-length: the default of the harness's client.
MAX_LENGTH = 2048
WITH_SHOTS = ["boolq", "cb", "copa", "multirc", "record", "rte", "wic", "wsc", "openbookqa", "winogrande"]

TASK = """
include: %(yaml)s
task: local_%(task)s
dataset_path: json
dataset_name: null
dataset_kwargs: {data_files: {%(split)s: %(hub)s/%(task)s.validation.jsonl, train: %(hub)s/%(task)s.train.jsonl}}
training_split: train
validation_split: %(validation)s
test_split: %(test)s
"""

GENERATION = """
task: local_generation
dataset_path: json
dataset_kwargs: {data_files: {validation: %(documents)s}}
validation_split: validation
output_type: generate_until
doc_to_text: "{{context}}"
doc_to_target: "{{answers[0]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 64, do_sample: false, temperature: 0}
filter_list: [{name: trimmed, filter: [{function: remove_whitespace}, {function: take_first}]}]
metric_list: [{metric: exact_match}]
"""


def ours(name, folder, shots):
    """The report of a task, and what the model said to each question."""
    samples = folder / "samples.jsonl"
    report = subprocess.run(
        [HIPPODROME, "eval", "lm", name, "--model", MODEL, "--data", folder, "--shots", str(shots), "--max-length",
         str(MAX_LENGTH), "--samples", samples, "--device", "cpu"], check=True, capture_output=True).stdout
    return json.loads(report)["tasks"][0], read_lines(samples)


def theirs(server, manager, task, shots):
    out = lm_eval.simple_evaluate(
        model="local-completions", tasks=[task], task_manager=manager, batch_size=16, num_fewshot=shots,
        bootstrap_iters=0, model_args={"model": "h3-demo", "base_url": server.completions}, log_samples=True)
    samples = sorted(out["samples"][task], key=lambda s: s["doc_id"])
    return out["results"][task], [s["filtered_resps"] for s in samples]


def likelihoods(sample):
    """Of the harness's answers to one question: of its choices, or of its one continuation or text."""
    return [answer[0] if isinstance(answer, (tuple, list)) else answer for answer in sample]


def compare_texts(report, samples, results, answers):
    equal = sum(sample["text"].lstrip() == answer[0] for sample, answer in zip(samples, answers))
    check("generation: texts", equal == len(samples) == len(answers), f"{equal} of {len(samples)} documents")
    check("generation: exact_match", results["exact_match,trimmed"] == report["exact_match"] > 0,
          f"{results['exact_match,trimmed']}, in process {report['exact_match']}")


def compare(name, report, samples, results, answers):
    worst, choices = 0, 0
    for sample, answer in zip(samples, answers):
        found = likelihoods(answer)
        mine = sample["log_probabilities"]
        if len(found) == 1:  # a text is the sum of its windows
            mine = [sum(mine)]
        worst = max([worst] + [abs(f - m) for f, m in zip(found, mine)])
        choices += len(found) == len(mine) and ("best" not in sample or found.index(max(found)) == sample["best"])
    check(f"{name}: choices and likelihoods", choices == len(samples) == len(answers) and worst <= TOLERANCE,
          f"{choices} of {len(samples)} documents, the largest difference {worst:.1e}")
    for metric in ("acc", "acc_norm", "f1", "em", "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"):
        if f"{metric},none" not in results or metric not in report:
            continue
        found = results[f"{metric},none"]
        check(f"{name}: {metric}", abs(found - report[metric]) <= TOLERANCE * max(1, abs(found)),
              f"{found:.6f}, in process {report[metric]:.6f}")


def write_yaml(folder, hub, task, yaml):
    """The harness's task on our files, on the split on which it evaluates: that decides which examples it draws."""
    test = "test_split: test" in (YAMLS / yaml).read_text() or "include: arc" in (YAMLS / yaml).read_text()
    (folder / f"{task}.yaml").write_text(TASK % {
        "yaml": YAMLS / yaml, "task": task, "hub": hub, "split": "test" if test else "validation",
        "validation": "null" if test else "validation", "test": "test" if test else "null"})


def make(folder, hub, yamls):
    for name, (_, task, yaml, _) in lm_task_files.TASKS.items():
        lm_task_files.write_task(name, folder, hub)
        write_yaml(yamls, hub, task, yaml)
    pages = pathlib.Path(sys.argv[2]).read_text() if len(sys.argv) > 2 else ""
    lm_task_files.write_wikitext(folder, hub, pages)
    write_yaml(yamls, hub, "wikitext", "wikitext/wikitext.yaml")
    (yamls / "generation.yaml").write_text(GENERATION % {"documents": folder / "generation.jsonl"})


def run(scratch):
    folder, hub, yamls = (scratch / part for part in ("published", "hub", "yamls"))
    for part in (folder, hub, yamls):
        part.mkdir()
    make(folder, hub, yamls)
    manager = TaskManager(include_path=str(yamls), include_defaults=False)
    tasks = {name: task for name, (_, task, _, _) in lm_task_files.TASKS.items()} | {"wikitext": "wikitext"}
    lm_task_files.write_generation(folder, "no answer")
    # The first answer is right now.
    lm_task_files.write_generation(folder, ours("generation", folder, 0)[1][0]["text"].strip())
    with Server(HIPPODROME, scratch) as server:
        compare_texts(*ours("generation", folder, 0), *theirs(server, manager, "local_generation", 0))
        for shots, names in ((0, list(tasks)), (3, WITH_SHOTS)):
            for name in names:
                label = f"{name}, {shots} shots" if shots else name
                compare(label, *ours(name, folder, shots),
                        *theirs(server, manager, f"local_{tasks[name]}", shots))


for package in ["lm_eval", "transformers", "datasets"]:
    print(package, importlib.metadata.version(package))
with tempfile.TemporaryDirectory() as directory:
    run(pathlib.Path(directory))
print("failures:", local_server.failures)
sys.exit(local_server.failures > 0)
