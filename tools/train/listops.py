"""ListOps: nested operations on digits, whose value is a digit.

    [MAX 4 3 [MIN 2 3 ] 1 0 ]     4

Nangia and Bowman, "ListOps: A Diagnostic Dataset for Latent Tree Learning", 2018; longer in Tay et
al., "Long Range Arena: A Benchmark for Efficient Transformers", 2020.

As published with Long Range Arena (lra_benchmarks/data/listops.py):
  - An expression is an operation with a chance of 1/4, else a digit, and always a digit at depth
    10, the outermost being at depth 1. Digits and operators are uniform, and so is the number of
    arguments, 2 to 10. FIRST and LAST of the paper of 2018 are left out.
  - An operator with its bracket is a token, a closing bracket is one, and a digit is one. A text
    has more than 500 and fewer than 2,000 tokens; others are drawn again.
  - The median of an even number of values is the mean of the middle two, rounded down.
  - No text appears twice. 96,000 texts are for training, 2,000 for validation, 2,000 for tests.

Ours:
  - Parentheses, which the published files have around pairs of tokens and which their
    reader drops (lra_benchmarks/listops/input_pipeline.py), are not written.
  - The published program has no seed; here the same seed gives the same texts.
  - Shorter texts have more than a quarter of the length that they stay below, as the published do.
"""

import itertools
import random

OPERATION_CHANCE = 1 / 4
DEEPEST = 10
FEWEST_ARGUMENTS, MOST_ARGUMENTS = 2, 10
LENGTH = 2000
SPLITS = {"train": 96000, "valid": 2000, "test": 2000}
CLOSE = "]"


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) // 2


OPERATORS = {"[MIN": min, "[MAX": max, "[MED": median, "[SM": lambda values: sum(values) % 10}

# Of the uncased WordPiece tokenizer, which sets brackets apart.
VOCABULARY = ["[", "]", "min", "max", "med", "sm", *map(str, range(10))]


def draw(chance, depth=1):
    """Yields the tokens of an expression, as `chance` will have it."""
    if depth == DEEPEST or chance.random() >= OPERATION_CHANCE:
        yield str(chance.randrange(10))
        return
    yield chance.choice(list(OPERATORS))
    for _ in range(chance.randint(FEWEST_ARGUMENTS, MOST_ARGUMENTS)):
        yield from draw(chance, depth + 1)
    yield CLOSE


def evaluate(tokens):
    """The value of an expression."""
    pending = [(None, [])]  # operators with the values of their arguments so far
    for token in tokens:
        if token in OPERATORS:
            pending.append((token, []))
        elif token == CLOSE:
            operator, values = pending.pop()
            pending[-1][1].append(OPERATORS[operator](values))
        else:
            pending[-1][1].append(int(token))
    (_, (value,)), = pending
    return value


def examples(length, seed):
    """Yields (value, text) without end, each text once."""
    chance = random.Random(seed)
    seen = set()
    while True:
        # What is too long need not be drawn to its end.
        tokens = list(itertools.islice(draw(chance), length))
        text = " ".join(tokens)
        if length // 4 < len(tokens) < length and text not in seen:
            seen.add(text)
            yield evaluate(tokens), text
