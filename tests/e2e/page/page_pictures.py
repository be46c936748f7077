"""Takes the pictures of the page that the documentation shows.

  page_pictures.py HIPPODROME MODELS TARGET [--work DIR]

MODELS holds h3-demo and bigs-demo. For the other tasks three small encoders are trained, for two
minutes, on sentences that are put together from lists of words: enough to show what a task is. With
--work they are kept in DIR, and used again.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import processes, web_driver

NAMES = ["Anna", "Captain Hope", "Edward", "Emma", "George", "Henry", "Jane", "Lady Ann", "Mary", "Robert"]
PLACES = ["Bath", "Dover", "England", "France", "London", "Paris", "Rome", "York"]
PEOPLE = ["captain", "doctor", "farmer", "lady", "old man", "sailor", "young woman"]
HOMES = ["a small house by the sea", "a village in the north", "the old town", "a room above the shop"]
THINGS = ["the sea", "the ships", "the garden", "the road", "the fire", "the stars"]
TIMES = ["in the morning", "every evening", "on Sunday", "at night"]

ENCODER = {"model_type": "BiGS", "hidden_size": 64, "num_hidden_layers": 3, "intermediate_size": 192,
           "num_ssm": 32, "max_position_embeddings": 64, "vocab_size": 8192}
RUN = {"length": 64, "batch": 32, "weights": "f32", "seed": 1, "checkpoint_every": 0,
       "optimizer": {"rate": 2e-3, "weight_decay": 0.01, "clip": 1.0},
       "schedule": {"kind": "cosine", "warmup": 50}}


def text_of(draw):
    """A few sentences, as (text, [(words, tag)], question, answer)."""
    who, where, home = draw.choice(NAMES), draw.choice(PLACES), draw.choice(HOMES)
    other, person, thing, when = (draw.choice(words) for words in (NAMES, PEOPLE, THINGS, TIMES))
    tagged, question, answer = draw.choice([
        ([(who, "PER"), ("lived in", "O"), (home, "O"), (".", "O")], f"Where did {who} live?", home),
        ([("The " + person, "O"), ("lived in", "O"), (home, "O"), (".", "O")],
         f"Where did the {person} live?", home),
        ([(who, "PER"), ("sailed from", "O"), (where, "LOC"), ("with", "O"), (other, "PER"), (".", "O")],
         f"Who sailed with {who}?", other),
        ([(who, "PER"), ("went to", "O"), (where, "LOC"), (when, "O"), (".", "O")],
         f"When did {who} go?", when),
        ([("The " + person, "O"), ("looked at", "O"), (thing, "O"), (when, "O"), (".", "O")],
         f"What did the {person} look at?", thing),
    ])
    return " ".join(words for words, _ in tagged).replace(" .", "."), tagged, question, answer


def write_masks(path, draw, hippodrome, tokenizer):
    with open(path + ".txt", "w") as file:
        for _ in range(4000):
            file.write(" ".join(text_of(draw)[0] for _ in range(2)) + "\n\n")
    subprocess.run([hippodrome, "tokenizer", "encode", "--tokenizer", tokenizer, "--input",
                    path + ".txt", "--output", path], check=True)


def write_tags(path, draw, *_):
    with open(path, "w") as file:
        for _ in range(4000):
            for words, tag in text_of(draw)[1]:
                for i, word in enumerate(words.split()):
                    file.write(f"{word}\t{tag if tag == 'O' else 'BI'[i > 0] + '-' + tag}\n")
            file.write("\n")


def write_questions(path, draw, *_):
    paragraphs = []
    for i in range(4000):
        text, _, question, answer = text_of(draw)
        before, after = text_of(draw)[0], text_of(draw)[0]
        start = len(before) + 1 + text.index(answer)
        paragraphs.append({"context": f"{before} {text} {after}", "qas": [{
            "id": str(i), "question": question, "answers": [{"text": answer, "answer_start": start}]}]})
    with open(path, "w") as file:
        json.dump({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}, file)


def train(hippodrome, tokenizer, work):
    """{name: directory} of the encoders, each trained unless it is there."""
    tasks = {
        "masks": ("masked_lm", write_masks, "masks.safetensors", 600, {}),
        "tags": ("token_classification", write_tags, "tags.tsv", 200,
                 {"labels": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], "columns": {"text": 0, "label": 1}}),
        "questions": ("question_answering", write_questions, "questions.json", 800, {}),
    }
    models = {}
    for name, (objective, write, file, steps, data) in tasks.items():
        models[name] = os.path.join(work, name, "model")
        if os.path.exists(models[name]):
            continue
        path = os.path.join(work, file)
        write(path, random.Random(1), hippodrome, tokenizer)
        run = {**RUN, "objective": objective, "data": {"train": path, **data}, "steps": steps,
               "output": os.path.join(work, name), "tokenizer": tokenizer, "model": {"config": ENCODER}}
        with open(os.path.join(work, name + ".run.json"), "w") as out:
            json.dump(run, out)
        subprocess.run([hippodrome, "train", "--config", out.name], check=True)
    return models


class Photographer:
    def __init__(self, browser, url, target):
        self.browser, self.url, self.target = browser, url, target

    def show(self, section, width, height, scheme):
        self.browser.resize(width, height, phone=width < 500)
        self.browser.prefer(color_scheme=scheme, reduced_motion="reduce")
        self.browser.open("about:blank")
        self.browser.open(f"{self.url}#{section}")
        self.browser.wait("return document.querySelector('#state').className === 'good' && "
                          "!document.getElementById(arguments[0]).hidden", section)

    def take(self, name):
        self.browser.screenshot(os.path.join(self.target, f"page-{name}.png"))

    def write(self, name, *window):
        self.show("write", *window)
        for field, value in {"seed": 7, "max_tokens": 70, "temperature": 0.5}.items():
            self.browser.run("document.getElementById(arguments[0]).value = arguments[1]", field, value)
        self.browser.run("document.getElementById('colour').click()")
        self.browser.click("#go")
        self.browser.wait("return document.querySelector('#go').textContent === 'Write' && "
                          "document.querySelectorAll('.token').length > 50")
        self.browser.run("window.scrollTo(0, 0)")
        self.browser.point('.token[data-index="10"]')
        time.sleep(0.1)
        self.take(name)

    def task(self, name, task, model, *window, **fields):
        self.show(task, *window)
        self.browser.choose(f"#{task} select", model)
        for field, value in fields.items():
            self.browser.type(f'#{task} [name="{field}"]', value)
        self.browser.click(f"#{task} .primary")
        self.browser.wait("return document.querySelector(arguments[0]).children.length > 0",
                          f"#{task} .result")
        self.browser.run("document.activeElement.blur()")
        self.take(name)

    def live(self, name, *window):
        """With calls that come and go for as long as the charts reach back."""
        self.show("live", *window)
        end = time.monotonic() + 190
        draw = random.Random(2)

        def call():
            while time.monotonic() < end:
                body = {"prompt": "It was a dark night, and", "max_tokens": draw.randrange(20, 400)}
                request = json.dumps(body).encode()
                with web_driver.DIRECT.open(self.url + "v1/completions", request) as response:
                    response.read()
                time.sleep(draw.expovariate(2))

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(185)
        self.take(name)
        for thread in threads:
            thread.join()


def photograph(photographer):
    photographer.write("write", 1280, 700, "light")
    photographer.write("write-phone", 390, 844, "dark")
    photographer.task("fill", "fill", "masks", 1280, 740, "light",
                      text="The [MASK] looked at the [MASK] every evening.")
    photographer.task("tag", "tag", "tags", 1280, 600, "dark",
                      text="Captain Hope sailed from Dover with Anna. Mary went to Paris on Sunday.")
    photographer.task("ask-phone", "ask", "questions", 390, 844, "light", question="Where did Emma live?",
                      context="Mary went to Rome at night. Emma lived in a village in the north. "
                              "The sailor looked at the stars every evening.")
    photographer.live("live", 1280, 1060, "dark")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("target")
    parser.add_argument("--work")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or temporary
        names = ("h3-demo", "bigs-demo")
        models = {name: os.path.join(options.models, name) for name in names}
        models.update(train(options.hippodrome, models["bigs-demo"], work))
        command = [options.hippodrome, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
        for name, directory in models.items():
            command += ["--model", f"{name}={directory}"]
        server = processes.Process(command, os.path.join(temporary, "log"))
        try:
            with web_driver.Browser(temporary) as browser:
                photograph(Photographer(browser, f"http://{server.listens('http')}/", options.target))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
