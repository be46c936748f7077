"""Small decoders of random weights, with the demo's tokenizer."""

import json
import os
import shutil
import subprocess

TOKENIZER = ("vocab.json", "merges.txt")


def without_attention(program, models, directory, layers=2, width=64):
    """Makes an H3 model in `directory`/model."""
    with open(os.path.join(models, "h3-demo", "config.json")) as file:
        demo = json.load(file)
    config = {"model_type": "h3", "d_model": width, "n_layer": layers, "d_inner": 4 * width,
              "vocab_size": demo["vocab_size"], "eos_token_id": demo["eos_token_id"],
              "ssm_cfg": {"d_state": 64}, "attn_layer_idx": []}
    return barely_trained(program, models, directory, config)


def barely_trained(program, models, directory, config):
    """Makes a model in `directory`/model: trained for a single step, that is, hardly."""
    run = {"model": {"config": config}, "objective": "induction_head",
           "data": {"vocabulary": 20, "sequence": 30}, "batch": 1, "micro_batch": 1, "steps": 1,
           "optimizer": {"rate": 1e-6, "clip": 1.0}, "schedule": {"kind": "constant"}, "weights": "f32", "seed": 1,
           "threads": 1, "output": directory}
    os.makedirs(directory)
    path = os.path.join(directory, "run.json")
    with open(path, "w") as file:
        json.dump(run, file)
    subprocess.run([program, "train", "--config", path], check=True, capture_output=True)
    model = os.path.join(directory, "model")
    for name in TOKENIZER:
        shutil.copy(os.path.join(models, "h3-demo", name), model)
    return model
