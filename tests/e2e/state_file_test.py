"""A text that is broken off, saved and gone on from is the text that was not broken off; and what inspect says of
the state, and what is refused.

  state_file_test.py HIPPODROME MODEL_DIR OTHER_MODEL_DIR
"""

import json
import subprocess
import sys
import tempfile

PROMPT = "It was a dark night, and"
SAMPLED = ("--temperature", "0.9", "--top-k", "40", "--frequency-penalty", "0.3")


def run(*arguments):
    return subprocess.run([HIPPODROME, *arguments], capture_output=True, text=True, check=False)


def generate(tokens, *arguments):
    """The new ids."""
    done = run("generate", "--model", MODEL, "--json", "--ignore-eos", "--max-tokens", str(tokens), *arguments)
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)["token_ids"]


def check_parts(folder, options, seed):
    """In three parts, the second of which has one token."""
    whole = generate(60, "--prompt", PROMPT, *options, *seed)
    one, two = folder + "/one", folder + "/two"
    parts = generate(25, "--prompt", PROMPT, "--save-state", one, *options, *seed)
    parts += generate(1, "--state", one, "--save-state", two, *options)
    parts += generate(34, "--state", two, *options)
    assert parts == whole, (options, parts, whole)


def check_new_text(folder):
    """A prompt after a state is what is new: saved twice, the states are the same."""
    one, two, three = folder + "/one", folder + "/two", folder + "/three"
    generate(5, "--prompt", PROMPT, "--save-state", one)
    generate(5, "--state", one, "--prompt", " she said", "--save-state", two)
    again = generate(5, "--state", one, "--prompt", " she said", "--save-state", three)
    assert generate(7, "--state", two) == generate(7, "--state", three)
    assert again != generate(5, "--state", one), "the new text makes no difference"


def check_inspect(folder):
    state = folder + "/inspected"
    generate(5, "--prompt-ids", "1,2,3", "--seed", "11", "--save-state", state)
    said = run("inspect", state)
    assert said.returncode == 0, said
    for line in ("a saved state\n", "\nposition 7\n", "\nseed 11\n", "\nsignature none\n", "as it should be\n",
                 "layers.0.modes ", "tokens "):
        assert line in said.stdout, (line, said.stdout)


def check_refusals(folder, other):
    state = folder + "/state"
    generate(5, "--prompt", PROMPT, "--save-state", state)
    refused = run("generate", "--model", other, "--state", state)
    assert refused.returncode == 1 and "model: the state is of" in refused.stderr, refused
    with open(state, "r+b") as file:
        file.seek(-5, 2)
        last = file.read(1)
        file.seek(-5, 2)
        file.write(bytes([last[0] ^ 1]))
    for command in (("generate", "--model", MODEL, "--state", state), ("inspect", state)):
        refused = run(*command)
        assert refused.returncode == 1 and "checksum" in refused.stderr, refused
    missing = run("generate", "--model", MODEL, "--state", folder + "/none")
    assert missing.returncode == 1 and "none: No such file" in missing.stderr, missing
    no_folder = run("generate", "--model", MODEL, "--prompt", "a", "--max-tokens", "1", "--save-state",
                    folder + "/no/state")
    assert no_folder.returncode == 1 and "no/state" in no_folder.stderr, no_folder


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_parts(folder, (), ())
        check_parts(folder, SAMPLED, ("--seed", "7"))
        check_new_text(folder)
        check_inspect(folder)
        check_refusals(folder, sys.argv[3])
    print("passed")


HIPPODROME, MODEL = sys.argv[1:3]
main()
