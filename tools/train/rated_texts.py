"""Reads the words and sentences that people rated for vaderSentiment (Hutto and Gilbert, 2014)."""

import re
import tarfile

LEXICON = "vaderSentiment/vader_lexicon.txt"
SENTENCES = "additional_resources/hutto_ICWSM_2014.tar.gz"
# The sentences of reviews of films are those of SST-2, nearly all of its development set among them:
# who trains on them cannot be judged by it.
PARTS = [f"hutto_ICWSM_2014/{part}_GroundTruth.txt"
         for part in ("amazonReviewSnippets", "tweets", "nytEditorialSnippets")]


def sentiments(lines):
    """(label, text) of lines whose second column is a rating from -4 to 4, without those near 0.
    The text is the third of three columns, otherwise the first."""
    for line in lines:
        columns = line.rstrip("\r\n").split("\t")
        rating = float(columns[1])
        if abs(rating) >= 0.5:
            text = columns[2] if len(columns) == 3 else columns[0]
            yield "positive" if rating > 0 else "negative", text


def lines_of(archive, name):
    try:
        file = archive.extractfile(name)
    except KeyError as error:
        raise ValueError(f"there is no {name}") from error
    return file.read().decode("utf-8", "replace").splitlines()


def read_package(path):
    """Of the source package at `path`: the words of its lexicon, without what is no word, then the
    sentences."""
    root = path.name.removesuffix(".tar.gz")
    with tarfile.open(path) as package:
        words = lines_of(package, f"{root}/{LEXICON}")
        rated = list(sentiments(word for word in words if re.match(r"[a-z][a-z' -]+\t", word)))
        with tarfile.open(fileobj=package.extractfile(f"{root}/{SENTENCES}")) as archive:
            for part in PARTS:
                rated += sentiments(lines_of(archive, part))
    return rated
