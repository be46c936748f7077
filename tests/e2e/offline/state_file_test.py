"""A text that is broken off, saved and gone on from is the text that was not broken off, by single calls and in a
session on the terminal; and what inspect says of the state, and what is refused.

  state_file_test.py HIPPODROME MODEL_DIR OTHER_MODEL_DIR
"""

import json
import os
import signal
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


def interrupted(*arguments):
    """The text of a command that a signal ends once it has begun, and what it says then."""
    command = [HIPPODROME, "generate", "--model", MODEL, "--ignore-eos", "--max-tokens", "100000", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        text = os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGTERM)
        text += process.stdout.read()
        said = process.stderr.read().decode()
        assert process.wait() == 0, said
    return text.decode().removesuffix("\n"), said


def check_signal(folder):
    """A signal ends an answer with its state, from which the text goes on."""
    state = folder + "/signalled"
    said, how = interrupted("--prompt", PROMPT, "--save-state", state)
    assert f"to go on: --state {state}\n" in how, how
    tokens = int(how.split("stopped after ")[1].split()[0])
    text = json.loads(run("generate", "--model", MODEL, "--json", "--ignore-eos", "--prompt", PROMPT, "--max-tokens",
                          str(tokens + 10)).stdout)["text"]
    rest = json.loads(run("generate", "--model", MODEL, "--json", "--ignore-eos", "--state", state, "--max-tokens",
                          "10").stdout)["text"]
    assert said + rest == text, (said, rest, text)


def check_new_text(folder):
    """A prompt after a state is what is new: saved twice, the states are the same."""
    one, two, three = folder + "/one", folder + "/two", folder + "/three"
    generate(5, "--prompt", PROMPT, "--save-state", one)
    generate(5, "--state", one, "--prompt", " she said", "--save-state", two)
    again = generate(5, "--state", one, "--prompt", " she said", "--save-state", three)
    assert generate(7, "--state", two) == generate(7, "--state", three)
    assert again != generate(5, "--state", one), "the new text makes no difference"


def talk(lines, *arguments, code=0):
    """What a session says to these lines, and its notes."""
    done = subprocess.run([HIPPODROME, "generate", "--model", MODEL, "--interactive", "--ignore-eos", "--max-tokens",
                           "20", *arguments], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    return done.stdout, done.stderr


def one_turn(*arguments):
    done = run("generate", "--model", MODEL, "--ignore-eos", "--max-tokens", "20", *arguments)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def check_session(folder, options):
    """The same as single calls, whose states go from one to the next."""
    turns = (PROMPT, " she said", " and then")
    single, start = "", ()
    for i, turn in enumerate(turns):
        single += one_turn(*start, *options, "--prompt", turn, "--save-state", f"{folder}/turn{i}")
        start = ("--state", f"{folder}/turn{i}")
    lines = "".join(turn + "\n" for turn in turns)
    last = folder + "/session"
    assert talk(lines, *options, "--save-state", last) == (single, ""), options
    assert generate(9, "--state", last) == generate(9, *start)
    # And from a state.
    begin = len(one_turn(*options, "--prompt", turns[0]))
    rest = talk("".join(turn + "\n" for turn in turns[1:]), *options, "--state", folder + "/turn0")
    assert rest == (single[begin:], ""), rest
    # What is taken back was not there.
    undone = talk(f"{turns[0]}\n/save {folder}/now\n other\n more\n/undo\n/undo\n{turns[1]}\n", *options)[0]
    two = talk(f"{turns[0]}\n{turns[1]}\n", *options)[0]
    assert undone.startswith(two[:begin]) and undone.endswith(two[begin:]), (undone, two)
    back = talk(f"Once\n/load {folder}/now\n{turns[1]}\n", *options)[0]
    assert back.endswith(two[begin:]), (back, two)


def check_interrupt(folder):
    """Ctrl-C ends an answer, not the session."""
    kept = folder + "/stopped"
    with subprocess.Popen([HIPPODROME, "generate", "--model", MODEL, "--interactive", "--ignore-eos", "--max-tokens",
                           "100000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        session.stdin.write(PROMPT.encode() + b"\n")
        session.stdin.flush()
        os.read(session.stdout.fileno(), 1)  # it has begun
        session.send_signal(signal.SIGINT)
        session.stdin.write(f"/save {kept}\n/quit\n".encode())
        session.stdin.close()
        session.stdout.read()
        assert session.wait() == 0
    assert len(generate(3, "--state", kept)) == 3


def check_session_refusals(folder):
    for more in (("--prompt", "a"), ("--prompt-ids", "1"), ("--json",)):
        assert "leave " + more[0] in talk("", *more, code=2)[1], more
    assert "nothing was said yet" in talk("", "--save-state", folder + "/empty", code=1)[1]
    assert "no such command" in talk("/nonsense\n")[1]


def check_inspect(folder):
    state = folder + "/inspected"
    generate(5, "--prompt-ids", "1,2,3", "--seed", "11", "--save-state", state)
    said = run("inspect", state)
    assert said.returncode == 0, said
    for line in ("a saved state\n", "\nposition 7\n", "\nseed 11\n", "\nsignature none\n", "as it should be\n",
                 "layers.0.modes ", "tokens "):
        assert line in said.stdout, (line, said.stdout)


def check_formats(folder):
    """Of half the size, and signed."""
    whole, half, signed, key = (f"{folder}/{name}" for name in ("whole", "half", "signed", "key"))
    with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("0123456789abcdef" * 4)
    generate(5, "--prompt", PROMPT, "--save-state", whole)
    generate(5, "--prompt", PROMPT, "--save-state", half, "--state-dtype", "bf16")
    assert os.path.getsize(half) < 0.7 * os.path.getsize(whole)
    said = run("generate", "--model", MODEL, "--state", half, "--max-tokens", "3")
    assert said.returncode == 0 and "lossy" in said.stderr, said
    expected = generate(6, "--state", whole)
    generate(5, "--prompt", PROMPT, "--save-state", signed, "--state-key", key)
    for options in ((), ("--state-key", key)):
        assert generate(6, "--state", signed, *options) == expected
    refused = run("generate", "--model", MODEL, "--state", whole, "--state-key", key)
    assert refused.returncode == 1 and "signature" in refused.stderr, refused
    assert "signature" in talk("", "--state", whole, "--state-key", key, code=1)[1]
    os.chmod(key, 0o644)
    refused = run("generate", "--model", MODEL, "--state", signed, "--state-key", key)
    assert refused.returncode == 1 and "0644" in refused.stderr, refused


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
        check_signal(folder)
        check_new_text(folder)
        check_session(folder, ())
        check_session(folder, (*SAMPLED, "--seed", "7"))
        check_interrupt(folder)
        check_session_refusals(folder)
        check_inspect(folder)
        check_formats(folder)
        check_refusals(folder, sys.argv[3])
    print("passed")


HIPPODROME, MODEL = sys.argv[1:3]
main()
