#!/usr/bin/env python3
"""lm-evaluation-harness, as it is published, scores over HTTP what `hippodrome eval choices` scores in
process: every log likelihood must be the same number. By hand, for it comes from PyPI.

    python3 -m venv venv
    venv/bin/pip install 'lm_eval[api]' transformers
    venv/bin/python tests/clients/lm_eval_harness.py build/release/bin/hippodrome

It serves deploy/models/h3-demo itself, and needs no network. The output of a run is in lm_eval_harness.txt.
"""
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  TRANSFORMERS_VERBOSITY="error", LMEVAL_LOG_LEVEL="ERROR")
import lm_eval
from lm_eval import utils
from lm_eval.models.openai_completions import LocalCompletionsAPI
from lm_eval.tasks import TaskManager

import local_server
from local_server import MODEL, Server, check, eval_choices, read_lines, write_lines

QUESTIONS = pathlib.Path(__file__).resolve().parent / "northanger_abbey.jsonl"
HIPPODROME = sys.argv[1]

CHOICES = """
task: %(task)s
dataset_path: json
dataset_kwargs: {data_files: {test: %(questions)s}}
test_split: test
output_type: multiple_choice
doc_to_text: context
doc_to_choice: choices
doc_to_target: gold
target_delimiter: ""
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
TASKS = {
    "choices": CHOICES.replace("%(task)s", "choices"),
    # As text, the token that stands for an empty context would be ordinary characters.
    "with_context": CHOICES.replace("%(task)s", "with_context").replace("questions", "with_context"),
    "rolling": """
task: rolling
dataset_path: json
dataset_kwargs: {data_files: {test: %(documents)s}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: text
metric_list: [{metric: bits_per_byte}]
""",
    "generation": """
task: generation
dataset_path: json
dataset_kwargs: {data_files: {test: %(documents)s}}
test_split: test
output_type: generate_until
doc_to_text: text
doc_to_target: text
target_delimiter: ""
generation_kwargs: {until: [" the", ","], max_gen_toks: 24, do_sample: false, temperature: 0}
metric_list: [{metric: exact_match}]
""",
}


def generated(prompt):
    answer = subprocess.run([HIPPODROME, "generate", "--model", MODEL, "--prompt", prompt, "--max-tokens",
                             "24", "--temperature", "0", "--json", "--device", "cpu"],
                            check=True, capture_output=True).stdout
    text = json.loads(answer)["text"]
    ends = [text.find(stop) for stop in (" the", ",") if stop in text]
    return text[:min(ends, default=len(text))]


def hugging_face_tokenizer(folder):
    """The model's files, and one that says whose tokenizer they are."""
    folder.mkdir()
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(MODEL / name, folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "GPT2Tokenizer", "model_max_length": 2048, "bos_token": "<|endoftext|>",
         "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}))
    return folder


def evaluate(server, manager, tasks, **arguments):
    """Runs the harness, and gives its metrics and the samples of each task, in the order of the file."""
    batch = arguments.pop("batch_size", 1)
    out = lm_eval.simple_evaluate(
        model="local-completions", tasks=tasks, task_manager=manager, batch_size=batch, bootstrap_iters=0,
        model_args={"model": "h3-demo", "base_url": server.completions, **arguments}, log_samples=True)
    samples = {t: sorted(out["samples"][t], key=lambda s: s["doc_id"]) for t in tasks}
    return out["results"], {t: [s["filtered_resps"] for s in samples[t]] for t in tasks}


class Truth:
    """What the same files give in process."""

    def __init__(self, folder, texts):
        self.report, scores = eval_choices(HIPPODROME, folder, QUESTIONS)
        self.choices = [list(zip(s["log_probabilities"], s["greedy"])) for s in scores]
        counts = [[len(c) for c in q["choices"]] for q in read_lines(QUESTIONS)]
        best = [max(range(len(c)), key=lambda i: s["log_probabilities"][i] / c[i])
                for s, c in zip(scores, counts)]
        gold = [q["gold"] for q in read_lines(QUESTIONS)]
        self.with_context = [c for c, q in zip(self.choices, read_lines(QUESTIONS)) if q["context"]]
        self.normalised = sum(b == g for b, g in zip(best, gold)) / len(gold)
        documents = [{"context": "", "choices": [t], "gold": 0} for t in texts]
        _, scores = eval_choices(HIPPODROME, folder, write_lines(folder / "whole.jsonl", documents))
        self.rolling = [s["log_probabilities"][0] for s in scores]
        self.generated = [generated(t) for t in texts]


def compare(name, truth, metrics, resps):
    if "choices" in resps:
        found = [[tuple(r) for r in doc] for doc in resps["choices"]]
        equal = sum(f == t for doc, true in zip(found, truth.choices) for f, t in zip(doc, true))
        check(f"{name}: loglikelihood", found == truth.choices,
              f"{equal} of {truth.report['choices']} (sum, greedy) equal")
        accuracy = metrics["choices"]["acc,none"]
        check(f"{name}: accuracy", accuracy == truth.report["accuracy"],
              f"{accuracy}, in process {truth.report['accuracy']}")
        normalised = metrics["choices"]["acc_norm,none"]
        check(f"{name}: accuracy by characters", normalised == truth.normalised,
              f"{normalised}, in process {truth.normalised}")
    if "with_context" in resps:
        found = [[tuple(r) for r in doc] for doc in resps["with_context"]]
        check(f"{name}: loglikelihood", found == truth.with_context,
              f"{sum(map(len, found))} (sum, greedy), equal")
    if "rolling" in resps:
        found = [doc[0] for doc in resps["rolling"]]
        check(f"{name}: loglikelihood_rolling", found == truth.rolling,
              f"{sum(f == t for f, t in zip(found, truth.rolling))} of {len(found)} equal, "
              f"{metrics['rolling']['bits_per_byte,none']:.4f} bits per byte")
    if "generation" in resps:
        found = [doc[0] for doc in resps["generation"]]
        check(f"{name}: generate_until", found == truth.generated,
              f"{sum(f == t for f, t in zip(found, truth.generated))} of {len(found)} equal, "
              f"the first {found[0]!r}")


def rolling_windows(folder, server, texts):
    """Texts longer than the harness lets a request be, which it cuts into windows of token ids."""
    model = LocalCompletionsAPI(model="h3-demo", base_url=server.completions, max_length=40, batch_size=8)
    found = model.loglikelihood_rolling([lm_eval.api.instance.Instance(
        "loglikelihood_rolling", {}, (t,), i) for i, t in enumerate(texts)], disable_tqdm=True)
    windows = [list(map(utils.make_disjoint_window, utils.get_rolling_token_windows(
        model.tok_encode(t), model.prefix_token_id, model.max_length - 1, 1))) for t in texts]
    questions = [{"context": c, "choices": [w], "gold": 0} for text in windows for c, w in text]
    _, scores = eval_choices(HIPPODROME, folder, write_lines(folder / "windows.jsonl", questions))
    rest = iter(s["log_probabilities"][0] for s in scores)
    expected = [sum(next(rest) for _ in text) for text in windows]
    check("remote tokenizer, requests of 39 tokens: loglikelihood_rolling", found == expected,
          f"{len(questions)} windows of {len(texts)} texts")


def command_line(server, folder, truth):
    """As its users call it."""
    out = folder / "out"
    subprocess.run([sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--model_args",
                    f"model=h3-demo,base_url={server.completions}", "--tasks", "choices", "--include_path", folder,
                    "--batch_size", "4", "--output_path", out], check=True, capture_output=True)
    report = json.loads(next(out.rglob("results_*.json")).read_text())
    accuracy = report["results"]["choices"]["acc,none"]
    check("lm_eval run: accuracy", accuracy == truth.report["accuracy"], accuracy)


def run(folder):
    texts = [q["context"].rstrip() + "".join(q["choices"][q["gold"]]) for q in read_lines(QUESTIONS)[:12]]
    documents = write_lines(folder / "documents.jsonl", [{"text": t} for t in texts])
    with_context = write_lines(folder / "with_context.jsonl",
                               [q for q in read_lines(QUESTIONS) if q["context"]])
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text % {
            "questions": QUESTIONS, "with_context": with_context, "documents": documents})
    truth = Truth(folder, texts)
    check("accuracy in process is not chance", truth.report["accuracy"] > 0.5,
          f"{truth.report['accuracy']} of {truth.report['examples']} questions with 4 choices")
    tokenizer = str(hugging_face_tokenizer(folder / "tokenizer"))
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    everything = ["choices", "rolling", "generation"]
    local = {"tokenizer_backend": "huggingface", "tokenizer": tokenizer}
    with Server(HIPPODROME, folder) as server:
        for name, tasks, arguments in [
                ("remote tokenizer, one at a time", everything, {}),
                ("remote tokenizer, batches of 32", everything, {"batch_size": 32}),
                ("remote tokenizer, 4 batches of 8 at once", everything,
                 {"batch_size": 8, "num_concurrent": 4}),
                ("Hugging Face's tokenizer, batches of 16", everything, {**local, "batch_size": 16}),
                ("Hugging Face's tokenizer, requests with text", ["with_context", "generation"],
                 {**local, "tokenized_requests": False}),
                ("no tokenizer, batches of 8", ["generation"],
                 {"tokenizer_backend": "None", "batch_size": 8})]:
            compare(name, truth, *evaluate(server, manager, tasks, **arguments))
        rolling_windows(folder, server, texts)
        command_line(server, folder, truth)


for package in ["lm_eval", "transformers", "datasets"]:
    print(package, importlib.metadata.version(package))
with tempfile.TemporaryDirectory() as scratch:
    run(pathlib.Path(scratch))
print("failures:", local_server.failures)
sys.exit(local_server.failures > 0)
