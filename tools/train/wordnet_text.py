"""Reads WordNet as it is packed for dictionary servers: each sense of each word as a line of text."""

import re

# "    n 1: .." begins the senses of a part of speech, "    2: .." each further one.
SENSE = re.compile(r"(?:^|\n) +(?:(?:n|v|adj|adv) )?\d+: ")
RELATED = re.compile(r"\[(syn|ant|also): ([^]]*)\]")


def related(sense, kind, word):
    """The other words that the sense names as its synonyms or antonyms."""
    for found, words in RELATED.findall(sense):
        if found == kind:
            # A hyphen at the end of a line is the word's own.
            names = (name.replace("- ", "-") for name in re.findall(r"\{([^}]*)\}", words))
            yield from (name for name in names if name != word)


def entry(word, text):
    """A line for each sense: word, its synonyms: what it means, with examples; not: antonyms."""
    for sense in SENSE.split(text)[1:]:
        sense = " ".join(sense.split())
        words = ", ".join([word, *related(sense, "syn", word)])
        opposite = ", ".join(related(sense, "ant", word))
        yield f"{words}: {RELATED.sub('', sense).strip()}" + (f"; not {opposite}" if opposite else "")


def read_senses(text):
    """Of a dictionary whose words begin lines; what is behind them is indented."""
    lines = []
    for article in re.split(r"\n(?=\S)", text.strip("\n")):
        word, _, rest = article.partition("\n")
        lines += entry(word.strip(), "\n" + rest)
    if not lines:
        raise ValueError("no word of WordNet has a sense")
    return lines
