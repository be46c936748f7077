"""The package of clients/python against the real program: its wheel in a fresh virtual environment runs the examples of
the documentation; then over HTTP and gRPC, synchronously and not: the same answers, servers that die or stop in the
middle of a text, states that are gone, keys, TLS, wrong requests, time limits.

  python_client_test.py HIPPODROME MODELS_DIR GOLDEN_DIR

The exit status is 77 without build/python or protoc. Without openssl TLS is left out.
"""

import asyncio
import contextlib
import inspect
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import api_keys, python_client
from testing.certificates import Authority, have_openssl
from testing.encoder_models import make_models
from testing.free_ports import free_addresses
from testing.http_peers import Server, wait_until

# Loopback is not behind anybody's proxy.
os.environ.update(NO_PROXY="127.0.0.1,localhost", no_proxy="127.0.0.1,localhost")
PAGES = "clients/python/README.md", "README.md", "docs/state.md"
PROMPT = "It was a dark night, and"
DRAWN = {"seed": 1, "temperature": 0.9, "ignore_eos": True}
LOOP = asyncio.new_event_loop()  # one for all: gRPC's threads do not like to see one closed


class Awaited:
    """An asynchronous client, or what one gave, called as if it were not."""

    def __init__(self, loop, made):
        self._loop, self._made = loop, made

    def __getattr__(self, name):
        value = getattr(self._made, name)
        return (lambda *args, **named: self._given(value(*args, **named))) if callable(value) else self._given(value)

    def _given(self, value):
        if inspect.iscoroutine(value):
            value = self._loop.run_until_complete(value)
        return Awaited(self._loop, value) if type(value).__name__.startswith("Async") else value

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self._loop.run_until_complete(self._made.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def client(kind, **how):
    """Of the synchronous or the asynchronous kind."""
    if kind is hippodrome_client.Client:
        with kind(**how) as made:
            yield made
        return
    with Awaited(LOOP, kind(**how)) as made:
        yield made


def ways(http, grpc):
    """(the kind of client, addresses) for each way to ask."""
    for kind in (hippodrome_client.Client, hippodrome_client.AsyncClient):
        yield kind, {"http": http}
        yield kind, {"grpc": grpc}


def places(server, scheme="http"):
    return f"{scheme}://%s:%d" % server.http, "%s:%d" % server.address("grpc")


def text_of(stream):
    return "".join(piece.text for piece in stream)


def fails(kind, ask, *args, **named):
    """The error of its class that it raises."""
    try:
        ask(*args, **named)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def environment(wheel, folder):
    """The interpreter of a virtual environment with the wheel and what it needs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = os.path.join(folder, "bin", "python")
    subprocess.run([python, "-m", "pip", "-q", "install", *python_client.OFFLINE, str(wheel)], check=True)
    subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", "check"], check=True)
    return python


def examples(page):
    """A program of all examples of a page, one after the other."""
    found = re.findall(r"^```python\n(.*?)^```$", (python_client.ROOT / page).read_text(), re.M | re.S)
    assert found, page
    return "\n".join(found) + "client.close()\n"


def check_examples(python, server, folder):
    """Over each protocol, and their types."""
    http, grpc = places(server)
    path = os.path.join(folder, "examples.py")
    for page, address in itertools.product(PAGES, (f'"{http}"', f'grpc="{grpc}"')):
        with open(path, "w") as file:
            file.write(re.sub(r'(?<=Client\()\[?"http://127.0.0.1:8080"\]?', address, examples(page)))
        done = subprocess.run([python, "-X", "dev", "-W", "error", path], capture_output=True, text=True, check=False)
        # -X dev also tells of callbacks that took long, as any does on a busy machine.
        said = re.sub(r"^Executing <.* took [0-9.]+ seconds$\n?", "", done.stderr, flags=re.M)
        assert done.returncode == 0 and not said, (page, said)
        assert done.stdout, page
        typed = subprocess.run([sys.executable, "-m", "mypy", "--python-executable", python, "--cache-dir",
                                os.path.join(folder, "types"), path], capture_output=True, text=True, check=False)
        assert typed.returncode == 0, (page, typed.stdout)


def check_types(folder):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.path.join(folder, "types"),
                           "hippodrome_client"], cwd=os.path.join(folder, "built", "clients", "python"),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def close(a, b):
    """Whether results are the same, but for how JSON rounds numbers of encoders, and what tells likely tokens."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, hippodrome_client.LikelyToken):
        return a.log_probability == b.log_probability
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(close(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    return abs(a - b) <= 1e-6 if isinstance(a, float) else a == b


def ask_all(ours):
    """What each call answers."""
    greedy = {"model": "h3-demo", "max_tokens": 12, "temperature": 0, "log_probabilities": 3, "score_prompt": True}
    ids = ours.tokenize(PROMPT, model="h3-demo")
    yield ids
    yield ours.detokenize(ids, model="h3-demo")
    yield ours.generate(PROMPT, **greedy)
    yield list(ours.generate(ids, stream=True, **greedy))[-1].usage
    yield ours.generate(PROMPT, max_tokens=12, seed=5, top_k=9, top_p=0.9, min_p=0.01, typical_p=0.9,
                        stop=["zebra", "q"], repetition_penalty=1.1, presence_penalty=0.1, frequency_penalty=0.2,
                        logit_bias={11: -50.0}, cache_prompt=False, cache_salt="s", cache_marks=[3], ignore_eos=True)
    yield ours.generate(PROMPT, max_tokens=0, log_probabilities=0, score_prompt=True)
    yield ours.generate(PROMPT, max_tokens=0).text
    yield ours.score(PROMPT, [" the", ids, " zebra stones"], per_token=True)
    yield ours.score(ids, [ids])
    for raw in (False, True):
        yield ours.classify(["My dogs love these.", ("a box", "of treats")], raw_scores=raw)
    yield ours.classify("a box " * 300, truncate="left")
    for normalize in (False, True):
        for per_token in (False, True):
            yield ours.embed(["a dog", "a box"], model="bigs-demo", normalize=normalize, per_token=per_token)
    yield ours.embed([[1, 5, 6, 2]], model="bigs-demo")
    yield ours.fill_mask(["A [MASK] and a [MASK].", "The [MASK]."], top_k=2)
    yield ours.fill_mask("The [MASK].", targets=["the", "a"])
    for aggregation in ("none", "simple", "first", "average", "max"):
        yield ours.tag_tokens(["Anna lives in Paris.", "Otto"], aggregation=aggregation)
    yield ours.answer_question([("Who lives?", "Anna lives in Paris, and so does Otto."), ("Who?", "Anna")], top_k=2,
                               max_answer_tokens=5, stride=8, allow_no_answer=True)
    yield ours.answer_question([("Who lives?", "Anna lives in Paris.")])


def check_answers(server):
    """The same each way."""
    expected = None
    for kind, how in ways(*places(server)):
        with client(kind, **how) as ours:
            answers = list(ask_all(ours))
            assert {model.name: model.head for model in ours.models()} == {
                "h3-demo": "", "bigs-demo": "sequence_classification", "filler": "masked_lm",
                "tagger": "token_classification", "answerer": "question_answering"}
        expected = expected or answers
        for number, (answer, other) in enumerate(zip(answers, expected, strict=True)):
            assert close(answer, other), (how, number, answer, other)
    assert expected[2].prompt_scores[0].log_probability is None, expected[2]
    assert len(expected[2].prompt_scores) == len(expected[0]) and len(expected[2].scores) == 12, expected[2]
    assert expected[5].text == "" and len(expected[5].prompt_scores) == len(expected[0]), expected[5]
    with client(hippodrome_client.Client, http=places(server)[0]) as ours:
        check_unusual_text(ours)


def check_unusual_text(ours):
    """Characters that end lines for some readers do not break a stream."""
    odd, = ours.tokenize("\x0c", model="h3-demo")
    text = text_of(ours.generate(PROMPT, max_tokens=3, temperature=0, logit_bias={odd: 100.0}, stream=True))
    assert text == "\x0c" * 3, text


def check_states(server):
    for kind, how in ways(*places(server)):
        with client(kind, **how) as ours:
            once = ours.generate(PROMPT, max_tokens=16, temperature=0)
            first = ours.generate(PROMPT, max_tokens=8, temperature=0, return_state="handle")
            data = ours.states.get(first.state.handle)
            assert len(data) == first.state.bytes, first
            kept = ours.states.put(data, state_ttl=60)
            forks = ours.states.fork(kept.handle, 2)
            for place in (first.state, kept.handle, forks[1], data):
                more = ours.generate(max_tokens=8, temperature=0, state=place)
                assert first.text + more.text == once.text, (first, more, once)
            drawn = {ours.generate(" Then", max_tokens=8, state=data).text for _ in range(3)}
            assert len(drawn) == 1, drawn  # the seed of the state goes on
            inline = ours.generate(PROMPT, max_tokens=8, temperature=0, return_state="inline", state_dtype="bf16").state
            assert inline.handle is None and len(inline.data) == inline.bytes < len(data), inline.bytes
            listed = {stored.handle for stored in ours.states.list()}
            assert {kept.handle, *forks} <= listed, listed
            ours.states.delete(kept.handle)
            fails(hippodrome_client.NotFoundError, ours.states.get, kept.handle)
            fails(hippodrome_client.NotFoundError, ours.states.delete, kept.handle)


def check_conversations(server):
    """A state that is forgotten changes nothing but what is taken in again."""
    for kind, how in ways(*places(server)):
        for back in ("handle", "inline"):
            with client(kind, **how) as ours:
                talk = ours.conversation(max_tokens=9, temperature=0, return_state=back, cache_prompt=False)
                talk.say(PROMPT)
                kept = talk.fork()
                second = talk.say(" Then she", stream=False)
                assert second.usage.cached_tokens > 0, second
                talk.undo()
                if talk.state.handle:
                    ours.states.delete(talk.state.handle)
                pieces = list(talk.say(" Then she", stream=True))
                assert "".join(piece.text for piece in pieces) == second.text, (pieces, second)
                assert (pieces[-1].usage.cached_tokens == 0) == (back == "handle"), pieces[-1]
                assert [turn.text for turn in talk.turns][1:] == [second.text], talk.turns
                assert len(kept.turns) == 1, kept.turns
                talk.undo(), talk.undo()
                fails(ValueError, talk.undo)


def check_moved_on(program, other):
    """A conversation whose state the client keeps goes on at the server `other`."""
    asked = {"max_tokens": 9, "temperature": 0, "cache_prompt": False, "return_state": "inline"}
    for kind, how in ways(*places(other)):
        (name, address), = how.items()
        with client(kind, **how) as ours:
            alone = ours.conversation(**asked)
            expected = [alone.say(text).text for text in (PROMPT, " Then she")]
        with Server(*program) as first, client(kind, **{name: [places(first)[name == "grpc"], address]}) as ours:
            talk = ours.conversation(**asked)
            talk.say(PROMPT)
            first.__exit__()  # SIGKILL
            last = talk.say(" Then she")
            assert [turn.text for turn in talk.turns] == expected, (talk.turns, expected)
            assert last.usage.cached_tokens > 0, last.usage


def check_version(server, wheel):
    version = re.search(r'"version":"([^"+-]+)', server.get("/version")[1])[1]
    assert wheel.name == f"hippodrome_client-{version}-py3-none-any.whl", (wheel, version)


def check_wrong(server):
    error = hippodrome_client.InvalidRequestError
    for kind, how in ways(*places(server)):
        with client(kind, **how) as ours:
            found = fails(error, ours.generate, PROMPT, max_tokens=-1)
            assert (found.param, found.code, found.status) == (
                "max_tokens", "invalid_argument", 400 if "http" in how else None), vars(found)
            found = fails(error, ours.generate, PROMPT, log_probabilities=21, stream=False)
            assert found.param == "log_probabilities", vars(found)
            fails(error, ours.generate)
            fails(error, ours.generate, PROMPT, state=b"nothing")
            fails(error, ours.score, PROMPT, [""])
            fails(error, ours.classify, ["a box " * 300])
            fails(error, ours.fill_mask, ["no mask"])
            fails(hippodrome_client.NotFoundError, ours.generate, PROMPT, model="nobody")
            fails(TypeError, ours.generate, PROMPT, max_token=3)
            fails(TypeError, ours.conversation, max_token=3)
            fails(error, lambda: list(ours.generate(PROMPT, temperature=-1, stream=True)))
            if "http" in how:
                fails(ValueError, ours.states.get, "../models")
                fails(ValueError, ours.fill_mask, [("a [MASK]", "pair")])
    for wrong in ({}, {"http": "127.0.0.1:80"}, {"grpc": "ftp://h:1"}):
        fails(ValueError, hippodrome_client.Client, **wrong)


def check_left(server):
    """Streams that nobody reads any more end at the server, and answers that take too long."""
    endless = {"max_tokens": 1 << 18, "ignore_eos": True, "model": "h3-demo"}
    for kind, how in ways(*places(server)):
        seen = []
        with client(kind, on_attempt=seen.append, **how) as ours:
            with ours.generate(PROMPT, stream=True, **endless) as stream:
                next(iter(stream))
            assert [attempt.outcome for attempt in seen] == ["left"], seen
            assert wait_until(lambda: server.running() == 0)
            if kind is hippodrome_client.Client:  # of the other kind the loop ends it, which does not run here
                for _ in ours.generate(PROMPT, stream=True, **endless):
                    break
                assert wait_until(lambda: server.running() == 0)
        with client(kind, timeout=0.3, **how) as ours:
            fails(hippodrome_client.RequestTimeoutError, ours.generate, PROMPT, **endless)
            fails(hippodrome_client.RequestTimeoutError,
                  lambda: [None for _ in ours.generate(PROMPT, stream=True, **endless)])
            assert wait_until(lambda: server.running() == 0)


def check_killed(program):
    """A server that is killed in the middle of a stream, and started again: the text is that of no disturbance."""
    http, grpc = free_addresses(2)
    options, asked = ("--http", http, "--grpc", grpc), {"max_tokens": 600, "log_probabilities": 0, **DRAWN}
    with Server(*program) as server, client(hippodrome_client.Client, http=places(server)[0]) as ours:
        expected = ours.generate(PROMPT, **asked)
    for kind, how in ways("http://" + http, grpc):
        attempts = []
        with client(kind, on_attempt=attempts.append, **how) as ours, contextlib.ExitStack() as ends:
            server = Server(*program, *options)
            ends.callback(server.__exit__)
            pieces = []
            for piece in ours.generate(PROMPT, stream=True, **asked):
                pieces.append(piece)
                if len(pieces) == 40:
                    server.__exit__()  # SIGKILL
                    again = threading.Thread(target=lambda: ends.callback(Server(*program, *options).__exit__))
                    again.start()
                    ends.callback(again.join)
            assert ends is not None and again.join() is None
            assert "".join(piece.text for piece in pieces) == expected.text, (kind, how)
            assert [token for piece in pieces for token in piece.token_ids] == list(expected.token_ids), (kind, how)
            assert [one for piece in pieces for one in piece.scores] == list(expected.scores), (kind, how)
            assert pieces[-1].usage == expected.usage, (pieces[-1], expected.usage)
            assert attempts[0].answered and attempts[-1].outcome == "ok" and len(attempts) > 1, attempts
        with client(kind, retry_seconds=0.2, **how) as ours:
            found = fails(hippodrome_client.RetryError, ours.generate, PROMPT)
            assert isinstance(found.__cause__, hippodrome_client.UnavailableError), repr(found.__cause__)


def stop_at_once(server):
    wait_until(lambda: server.running() > 0)
    server.signal()


def take(ours, stream, server, asked):
    """The text and the usage of an answer in which the server is told to stop."""
    if not stream:
        stopping = threading.Thread(target=stop_at_once, args=[server])
        stopping.start()
        answer = ours.generate(PROMPT, **asked)
        stopping.join()
        return answer.text, answer.usage
    pieces = []
    for piece in ours.generate(PROMPT, stream=True, **asked):
        pieces.append(piece)
        if len(pieces) == 5:
            server.signal()
    return text_of(pieces), pieces[-1].usage


def check_migrated(program, folder):
    """A server that stops hands a text over to another one."""
    asked = {"max_tokens": 5000, **DRAWN}  # longer than the grace period
    options = "--state-store", os.path.join(folder, "store"), "--grace-seconds", "1", "--max-stall-ms", "1"
    with Server(*program, *options) as other:
        with client(hippodrome_client.Client, http=places(other)[0]) as ours:
            expected = ours.generate(PROMPT, **asked)
        for (kind, how), stream in zip(ways(*places(other)), (True, False, False, True)):
            (name, address), = how.items()
            attempts = []
            with Server(*program, *options) as first, client(
                    kind, on_attempt=attempts.append, **{name: [places(first)[name == "grpc"], address]}) as ours:
                text, usage = take(ours, stream, first, asked)
            assert text == expected.text, (kind, name, text, expected.text)
            assert usage == expected.usage, (usage, expected.usage)
            outcomes = [attempt.outcome for attempt in attempts]
            assert outcomes[0] == "migrated" and outcomes[-1] == "ok", outcomes


def check_keys(program, folder):
    path = os.path.join(folder, "keys.json")
    secret, entry = api_keys.new(program[0], "alice", models=["h3-demo"])
    api_keys.write(path, [entry])
    with Server(*program, "--api-keys", path, key=secret) as server:
        for kind, how in ways(*places(server)):
            with client(kind, api_key=secret, **how) as ours:
                assert ours.generate(PROMPT, max_tokens=3).text
                found = fails(hippodrome_client.PermissionDeniedError, ours.classify, ["a"], model="bigs-demo")
                assert found.status == (403 if "http" in how else None), vars(found)
            for wrong in (None, "wrong"):
                with client(kind, api_key=wrong, **how) as ours:
                    fails(hippodrome_client.AuthenticationError, ours.generate, PROMPT)


class TlsServer(Server):
    def __init__(self, program, folder, authority, *options):
        self.certificate, key = authority.issue("server")
        super().__init__(*program, "--tls-cert", self.certificate, "--tls-key", key, *options)

    def get(self, path, where=None, timeout=60):
        return 200, ""  # whether it is ready, each client sees


def check_tls(program, folder):
    authority, other = Authority(folder), Authority(folder, "other")
    own = authority.issue("alice")
    with TlsServer(program, folder, authority, "--tls-client-ca", authority.pem) as server:
        for kind, how in ways(*places(server, "https")):
            with client(kind, ca=authority.pem, certificate=own, **how) as ours:
                assert text_of(ours.generate(PROMPT, max_tokens=3, temperature=0, stream=True))
            with client(kind, ca=other.pem, certificate=own, **how) as ours:
                found = fails(hippodrome_client.UnavailableError, ours.models)  # not after retry_seconds
                assert "certificate" in str(found).lower(), found
            with client(kind, ca=authority.pem, retry_seconds=0.2, **how) as ours:
                fails(hippodrome_client.RetryError, ours.models)  # it has no certificate


def main():
    program, golden = (sys.argv[1], os.path.abspath(sys.argv[2])), sys.argv[3]
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        global hippodrome_client
        wheel = python_client.build(os.path.join(folder, "built"))
        sys.path.insert(0, str(wheel))
        import hippodrome_client
        toys = make_models(golden, folder)
        more = [f"{name}={toys[name]}" for name in ("filler", "tagger", "answerer")]
        with Server(*program, *(word for name in more for word in ("--model", name))) as server:
            check_version(server, wheel)
            check_examples(environment(wheel, os.path.join(folder, "python")), server, folder)
            for check in (check_answers, check_states, check_conversations, check_wrong, check_left):
                check(server)
            check_moved_on(program, server)
        check_types(folder)
        check_killed(program)
        check_migrated(program, folder)
        check_keys(program, folder)
        if have_openssl():
            check_tls(program, folder)


if __name__ == "__main__":
    main()
