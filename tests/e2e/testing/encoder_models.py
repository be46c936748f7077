"""Small encoders, one for each head, and what a model itself says of an input."""

import array
import json
import math
import os
import random
import shutil
import struct
import subprocess

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
CODES = {"F32": "f", "I64": "q"}


def read_tensors(path):
    """{name: (shape, values)} of the F32 tensors of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, tensor in header.items():
        if tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            tensors[name] = (tensor["shape"], array.array("f", data[begin:end]))
    return tensors


def write_tensors(path, dtype, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        encoded = array.array(CODES[dtype], values).tobytes()
        offsets = [len(data), len(data) + len(encoded)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += encoded
    encoded = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded + data)


def with_head(source, directory, architecture, tensor, outputs, **config):
    """A copy of the model directory `source` with a random linear head, `outputs` wide."""
    shutil.copytree(source, directory)
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = {**json.load(file), "architectures": [architecture], **config}
    os.chmod(path, 0o644)
    with open(path, "w") as file:
        json.dump(config, file)
    path = os.path.join(directory, "model.safetensors")
    tensors = read_tensors(path)
    size = config["hidden_size"]
    generator = random.Random(1)
    weight = [generator.gauss(0, 2 / math.sqrt(size)) for _ in range(outputs * size)]
    tensors[tensor + ".weight"] = ([outputs, size], weight)
    tensors[tensor + ".bias"] = ([outputs], [generator.gauss(0, 0.1) for _ in range(outputs)])
    os.chmod(path, 0o644)
    write_tensors(path, "F32", tensors)
    return directory


def make_models(golden, work):
    """{name: directory}, the classifier first."""
    filler = os.path.join(golden, "masked_lm")
    return {
        "classifier": os.path.join(golden, "classifier"),
        "filler": filler,
        "tagger": with_head(filler, os.path.join(work, "tagger"), "BiGSForTokenClassification",
                            "classifier", len(TAGS),
                            id2label={str(i): tag for i, tag in enumerate(TAGS)}),
        "answerer": with_head(filler, os.path.join(work, "answerer"), "BiGSForQuestionAnswering",
                              "qa_outputs", 2),
        "chooser": with_head(filler, os.path.join(work, "chooser"), "BiGSForMultipleChoice",
                             "classifier", 1),
    }


class Forward:
    """`hippodrome forward`, which neither tokenizes nor pads."""

    def __init__(self, hippodrome, work):
        self.hippodrome = hippodrome
        self.work = work

    def __call__(self, directory, ids, types=None):
        """{name: values} of one input, padded here as the server pads it."""
        with open(os.path.join(directory, "config.json")) as file:
            length = json.load(file)["max_position_embeddings"]
        rows = {"input_ids": ids, "token_type_ids": types or [0] * len(ids),
                "attention_mask": [1] * len(ids)}
        padded = {name: ([1, length], row + [0] * (length - len(row)))
                  for name, row in rows.items()}
        source = os.path.join(self.work, "input.safetensors")
        target = os.path.join(self.work, "output.safetensors")
        write_tensors(source, "I64", padded)
        subprocess.run([self.hippodrome, "forward", "--model", directory, "--input", source,
                        "--output", target, "--weights", "f32", "--device", "cpu"], check=True)
        return {name: list(values) for name, (_, values) in read_tensors(target).items()}


def softmax(logits):
    powers = [math.exp(x - max(logits)) for x in logits]
    return [power / sum(powers) for power in powers]
