"""Small files of `hippodrome eval lm`'s tasks, made from sentences of Northanger Abbey: as they are published, and as
lm-evaluation-harness has them from Hugging Face."""

import json
import pathlib
import random
import re

SENTENCES = pathlib.Path(__file__).resolve().parent / "northanger_abbey.jsonl"
DOCUMENTS = 40


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        lines = [json.loads(line) for line in SENTENCES.read_text().splitlines()]
        text = " ".join(q["context"].strip() + q["choices"][q["gold"]] for q in lines)
        self.sentences = [s.strip().replace("_", "") + "." for s in text.split(".") if len(s.split()) > 6]
        self.words = sorted({w.strip(",;:!?\"'-") for s in self.sentences for w in s.split()} - {""})

    def sentence(self):
        return self.random.choice(self.sentences)

    def word(self):
        return self.random.choice(self.words)

    def passage(self, sentences=3):
        return " ".join(self.sentence() for _ in range(sentences))

    def span(self, text):
        """A word of `text`: its place among the words, and the word."""
        place = self.random.randrange(len(text.split()))
        return place, text.split()[place]


def boolq(m, i):
    doc = {"question": m.sentence()[:-1].lower(), "passage": m.passage() + " – £5 “é”", "idx": i}
    label = m.random.random() < 0.5
    return {**doc, "label": label}, [{**doc, "label": int(label)}]


def cb(m, i):
    doc = {"premise": m.passage(2), "hypothesis": m.sentence()[:-1], "idx": i}
    label = m.random.randrange(3)
    return {**doc, "label": ["entailment", "contradiction", "neutral"][label]}, [{**doc, "label": label}]


def copa(m, i):
    doc = {"premise": m.sentence() + " " * (i % 3), "choice1": m.sentence(), "choice2": m.sentence(),
           "question": m.random.choice(["cause", "effect"]), "label": m.random.randrange(2), "idx": i}
    return doc, [doc]


def rte(m, i):
    doc = {"premise": m.passage(2), "hypothesis": m.sentence(), "idx": i}
    label = m.random.randrange(2)
    return {**doc, "label": ["entailment", "not_entailment"][label]}, [{**doc, "label": label}]


def wic(m, i):
    one, other = m.sentence(), m.sentence()
    word = m.span(one)[1]
    start = one.index(word)
    doc = {"word": word, "sentence1": one, "sentence2": other, "start1": start, "end1": start + len(word),
           "start2": 0, "end2": 1, "idx": i}
    label = m.random.random() < 0.5
    return {**doc, "label": label}, [{**doc, "label": int(label)}]


def wsc(m, i):
    text = m.passage(2).replace(", ", " , ")
    (one, noun), (two, pronoun) = m.span(text), m.span(text)
    target = {"span1_index": one, "span1_text": noun, "span2_index": two, "span2_text": pronoun}
    label = m.random.random() < 0.5
    return ({"text": text, "target": target, "label": label, "idx": i},
            [{"text": text, **target, "label": int(label), "idx": i}])


def multirc(m, i):
    paragraph = m.passage()
    questions = [{"question": m.sentence()[:-1] + "?", "idx": q,
                  "answers": [{"text": m.word(), "idx": a, "label": m.random.randrange(2)} for a in range(2)]}
                 for q in range(2)]
    flat = [{"paragraph": paragraph, "question": q["question"], "answer": a["text"], "label": a["label"],
             "idx": {"paragraph": i, "question": q["idx"], "answer": a["idx"]}}
            for q in questions for a in q["answers"]]
    return {"idx": i, "passage": {"text": paragraph, "questions": questions}}, flat


def record(m, i):
    text = m.passage() + "".join(f"\n@highlight\n{m.sentence()[:-1]}" for _ in range(2))
    entities = []
    for word in sorted({m.span(text)[1] for _ in range(4)}):
        begin = text.index(word)
        entities.append({"start": begin, "end": begin + len(word) - 1})
    names = [text[e["start"]:e["end"] + 1] for e in entities]
    query = f"{m.word()} said that @placeholder {m.word()}."
    answers = [{**entities[0], "text": names[0]}] * 2 + [{**entities[-1], "text": names[-1]}]
    published = {"source": "Daily mail", "passage": {"text": text, "entities": entities},
                 "qas": [{"query": query, "answers": answers, "idx": i}], "idx": i}
    return published, [{"passage": text, "query": query, "entities": names + names[:1],
                        "answers": [a["text"] for a in answers], "idx": {"passage": i, "query": i}}]


def blimp(m, i):
    good = m.sentence()
    words = good.split()
    m.random.shuffle(words)
    doc = {"sentence_good": good, "sentence_bad": " ".join(words), "UID": "adjunct_island", "pairID": str(i)}
    return doc, [doc]


def hellaswag(m, i):
    doc = {"ind": i, "activity_label": m.word().title(), "ctx_a": m.sentence() + " [title]",
           "ctx_b": ["", "then HE went [step]  away"][i % 2], "ctx": "",
           "endings": [f" {m.sentence()} [substeps] {m.word()}" for _ in range(4)]}
    label = m.random.randrange(4)
    return {**doc, "label": label}, [{**doc, "label": str(label)}]


def piqa(m, i):
    doc = {"goal": m.sentence(), "sol1": m.sentence(), "sol2": m.sentence(), "label": m.random.randrange(2)}
    return doc, [doc]


def science(m, i, stem):
    letters = "ABCD" if i % 2 else "1234"
    texts = [m.sentence() for _ in letters]
    key = m.random.choice(letters)
    question = m.sentence()[:-1] + "?"
    return ({"id": str(i), "question": {"stem": question, "choices": [
        {"text": t, "label": letter} for t, letter in zip(texts, letters)]}, "answerKey": key},
            [{"id": str(i), stem: question, "choices": {"text": texts, "label": list(letters)}, "answerKey": key}])


def arc(m, i):
    return science(m, i, "question")


def openbookqa(m, i):
    return science(m, i, "question_stem")


def winogrande(m, i):
    words = m.sentence().split()
    words[m.random.randrange(2, len(words) - 1)] = "_"
    doc = {"qID": str(i), "sentence": " ".join(words), "option1": m.word(), "option2": m.word(),
           "answer": m.random.choice("12")}
    return doc, [doc]


def lambada(m, i):
    doc = {"text": m.passage(2)[:-1]}
    return doc, [doc]


def pile(m, i):
    doc = {"text": m.passage(40 if i == 0 else 4), "meta": {"pile_set_name": ["ArXiv", "Github"][i % 2]}}
    return doc, [doc]


def wikitext_page(m, i):
    marked = m.passage(4).replace(",", " ,").replace(".", " .").replace("-", " @-@ ").replace("'s", " 's")
    return (f" = {m.word().title()} = \n \n {marked} ( {m.word()} ) \" {m.word()} \" 1 @,@ 000 = 3 @.@ 5 \n \n"
            f" = = {m.word()} = = \n \n {marked} \n")


# Task of ours: its file, the harness's task and which of its YAML files says so, how documents are made.
TASKS = {
    "boolq": ("BoolQ/val.jsonl", "boolq", "super_glue/boolq/default.yaml", boolq),
    "cb": ("CB/val.jsonl", "cb", "super_glue/cb/default.yaml", cb),
    "copa": ("COPA/val.jsonl", "copa", "super_glue/copa/default.yaml", copa),
    "multirc": ("MultiRC/val.jsonl", "multirc", "super_glue/multirc/default.yaml", multirc),
    "record": ("ReCoRD/val.jsonl", "record", "super_glue/record/default.yaml", record),
    "rte": ("RTE/val.jsonl", "sglue_rte", "super_glue/rte/default.yaml", rte),
    "wic": ("WiC/val.jsonl", "wic", "super_glue/wic/default.yaml", wic),
    "wsc": ("WSC/val.jsonl", "wsc", "super_glue/wsc/default.yaml", wsc),
    "blimp": ("blimp.jsonl", "blimp_adjunct_island", "blimp/adjunct_island.yaml", blimp),
    "hellaswag": ("hellaswag_val.jsonl", "hellaswag", "hellaswag/hellaswag.yaml", hellaswag),
    "piqa": ("piqa.jsonl", "piqa", "piqa/piqa.yaml", piqa),
    "arc_easy": ("arc_easy.jsonl", "arc_easy", "arc/arc_easy.yaml", arc),
    "arc_challenge": ("arc_challenge.jsonl", "arc_challenge", "arc/arc_challenge.yaml", arc),
    "openbookqa": ("openbookqa.jsonl", "openbookqa", "openbookqa/openbookqa.yaml", openbookqa),
    "winogrande": ("winogrande.jsonl", "winogrande", "winogrande/default.yaml", winogrande),
    "lambada": ("lambada.jsonl", "lambada_openai", "lambada/lambada_openai.yaml", lambada),
    "pile": ("pile.jsonl", "pile_arxiv", "pile/pile_arxiv.yaml", pile),
}


def write_lines(path, docs):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(d) + "\n" for d in docs))


def write_task(name, folder, hub):
    """Writes DOCUMENTS of a task, and as many to take examples from, into `folder` as published, and into `hub`."""
    file, harness, _, make = TASKS[name]
    train = file.replace("val.jsonl", "train.jsonl") if "/" in file else file.replace(".jsonl", ".train.jsonl")
    for split, path in (("validation", file), ("train", train)):
        made = [make(Maker(f"{name} {split} {i}"), i) for i in range(DOCUMENTS)]
        write_lines(folder / path, [published for published, _ in made])
        write_lines(hub / f"{harness}.{split}.jsonl", [row for _, rows in made for row in rows])


def write_generation(folder, answer):
    """Beginnings of sentences, for all of which `answer` is the only right end."""
    makers = [Maker(f"generation {i}") for i in range(DOCUMENTS)]
    write_lines(folder / "generation.jsonl",
                [{"context": " ".join(m.passage(2).split()[:-4]), "answers": [answer]} for m in makers])


def write_wikitext(folder, hub, published):
    """`published`: the text of a file of WikiText, which is cut at the headings of its pages; or empty: made pages."""
    pages = [wikitext_page(Maker(f"wikitext {i}"), i) for i in range(8)]
    if published:
        pages = [page for page in re.split(r"(?m)^(?= = [^=]* = $)", published) if page.strip()]
    (folder / "wiki.test.raw").write_text("".join(pages))
    for split in ("validation", "train"):
        write_lines(hub / f"wikitext.{split}.jsonl", [{"page": page} for page in pages])
