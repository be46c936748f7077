"""Saved states over HTTP and gRPC: conversations by handle and by file, whose handles are whose, what is
refused, and what outlives the server.

  states_test.py HIPPODROME MODELS_DIR
"""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import api_keys, grpc_messages, http_peers, raw_http2
from testing.http_peers import Server

TURNS = ("It was a dark night, and", " Then the old man", " said that", " and so they went")
TOKENS = 12
UNKNOWN = "0" * 32
STATES = "/hippodrome.v1.States/"
OK, INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 0, 3, 5, 9
MIB = 1 << 20

arguments = None


class Client:
    """Of one server, with one key or none."""

    def __init__(self, server, key=None):
        self.server = server
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, method, path, body=b""):
        connection = http.client.HTTPConnection(*self.server.http, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, self.headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def json(self, method, path, body=None):
        status, text = self.ask(method, path, b"" if body is None else json.dumps(body))
        assert status == 200, (status, text)
        return json.loads(text)

    def complete(self, **fields):
        fields = {"model": "h3-demo", "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True, **fields}
        return self.json("POST", "/v1/completions", fields)

    def refusal(self, **fields):
        return self.ask("POST", "/v1/completions", json.dumps({"model": "h3-demo", "max_tokens": 1, **fields}))[0]

    def tokens(self, prompt):
        return self.json("POST", "/tokenize", {"model": "h3-demo", "prompt": prompt})["tokens"]

    def conversation(self, **first):
        """The answers to TURNS, each going on from the state of the one before."""
        answers, state = [], first
        for turn in TURNS:
            answer = self.complete(prompt=self.tokens(turn), return_state="handle", **state)
            answers.append(ids(answer))
            state = {"state": answer["state"]["handle"]}
        return answers, state["state"]

    def grpc(self, method, *messages):
        """The status, and the messages of the answer."""
        return grpc_messages.call(self.server, method, *messages,
                                  **{name.lower(): value for name, value in self.headers.items()})


def ids(answer):
    return answer["choices"][0]["token_ids"]


class StatesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = contextlib.ExitStack()
        cls.folder = cls.files.enter_context(tempfile.TemporaryDirectory())
        cls.server = cls.files.enter_context(Server(arguments.hippodrome, arguments.models))
        cls.client = Client(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.files.close()

    def test_one_generation_in_pieces_is_the_same(self):
        """Of any number of tokens, bit for bit: the log probabilities as well."""
        prompt = self.client.tokens(TURNS[0])
        scored = {"logprobs": 1}
        whole = self.client.complete(prompt=prompt, max_tokens=24, **scored)["choices"][0]
        tokens, scores, state = [], [], {"prompt": prompt}
        for pieces in (1, 2, 8, 13):
            answer = self.client.complete(max_tokens=pieces, return_state="handle", **state, **scored)
            tokens += ids(answer)
            scores += answer["choices"][0]["logprobs"]["token_logprobs"]
            self.assertEqual(answer["state"]["position"], len(prompt) + len(tokens) - 1)
            self.assertTrue(answer["state"]["exact"])
            state = {"state": answer["state"]["handle"]}
        self.assertEqual(tokens, whole["token_ids"])
        self.assertEqual(scores, whole["logprobs"]["token_logprobs"])

    def test_a_conversation_takes_nothing_in_again(self):
        name = 'hippodrome_prompt_tokens_total{model="h3-demo"}'
        before = self.server.metrics()[name]
        answers, _ = self.client.conversation()
        taken = self.server.metrics()[name] - before
        # Of each answer but the last, its last token was not in the state yet.
        self.assertEqual(taken, sum(len(self.client.tokens(turn)) for turn in TURNS) + len(TURNS) - 1)
        self.assertEqual(self.client.conversation()[0], answers)

    def test_usage_says_what_was_not_taken_in(self):
        prompt = self.client.tokens(TURNS[0])
        first = self.client.complete(prompt=prompt, return_state="handle")
        self.assertEqual(first["usage"]["prompt_tokens_details"], {"cached_tokens": 0})
        second = self.client.complete(prompt=[5, 6], state=first["state"]["handle"])
        position = len(prompt) + TOKENS - 1
        self.assertEqual(second["usage"]["prompt_tokens"], position + 3)
        self.assertEqual(second["usage"]["prompt_tokens_details"], {"cached_tokens": position})

    def test_a_state_can_be_gone_on_from_in_many_ways(self):
        _, handle = self.client.conversation()
        forks = self.client.json("POST", f"/v1/states/{handle}/fork", {"n": 2})["handles"]
        file = self.client.ask("GET", f"/v1/states/{handle}")[1]
        status, text = self.client.ask("PUT", f"/v1/states/{UNKNOWN[1:]}1", file)
        self.assertEqual(status, 200, text)
        ways = [handle, *forks, json.loads(text)["handle"], base64.b64encode(file).decode()]
        answers = [ids(self.client.complete(prompt=" He", state=way)) for way in ways]
        self.assertEqual(answers, [answers[0]] * len(ways))
        # And with itself unchanged.
        self.assertEqual(ids(self.client.complete(prompt=" He", state=handle)), answers[0])
        several = self.client.complete(prompt=" He", state=handle, n=3, temperature=1, seed=5)["choices"]
        self.assertEqual(len({str(choice["token_ids"]) for choice in several}), 3)

    def test_an_inline_state_is_the_file(self):
        answer = self.client.complete(prompt=TURNS[0], return_state="inline")
        file = base64.b64decode(answer["state"]["data"])
        self.assertEqual(len(file), answer["state"]["bytes"])
        header = json.loads(file[8:8 + int.from_bytes(file[:8], "little")])
        self.assertEqual(header["__metadata__"]["format"], "hippodrome.state")
        self.assertEqual(int(header["__metadata__"]["position"]), answer["state"]["position"])
        self.assertIsNone(answer["state"]["handle"])

    def test_the_seed_goes_on(self):
        prompt = self.client.tokens(TURNS[0])
        drawn = {"temperature": 1, "max_tokens": 16}
        whole = self.client.complete(prompt=prompt, seed=7, **drawn)
        first = self.client.complete(prompt=prompt, seed=7, temperature=1, max_tokens=9, return_state="handle")
        second = self.client.complete(state=first["state"]["handle"], temperature=1, max_tokens=7)
        self.assertEqual(ids(first) + ids(second), ids(whole))

    def test_a_stream_ends_with_its_state(self):
        body = json.dumps({"model": "h3-demo", "prompt": "It was", "max_tokens": 5, "stream": True,
                           "ignore_eos": True, "return_state": "handle",
                           "stream_options": {"include_usage": True}})
        events = [json.loads(line[6:]) for line in self.client.ask("POST", "/v1/completions", body)[1].decode()
                  .splitlines() if line.startswith("data: {")]
        self.assertEqual([("state" in event) for event in events], [False] * 4 + [True, False])
        self.assertEqual(events[-2]["choices"][0]["finish_reason"], "length")
        self.assertEqual(events[-1]["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_what_is_damaged_is_refused(self):
        answer = self.client.complete(prompt=TURNS[0], return_state="inline")
        file = base64.b64decode(answer["state"]["data"])
        header = 8 + int.from_bytes(file[:8], "little")
        place = f"/v1/states/{UNKNOWN}"

        def flipped(at, bit=0):
            return file[:at] + bytes([file[at] ^ 1 << bit]) + file[at + 1:]

        self.assertEqual(self.client.ask("PUT", place, file)[0], 200)
        damaged = [flipped(header), flipped(header + 4001, 6), flipped(len(file) - 1, 7), file[:-1], file[:header],
                   file[:8], b"", file + b"\0", flipped(0, 5)]
        for data in damaged:
            self.assertEqual(self.client.ask("PUT", place, data)[0], 400, len(data))
            if data:
                self.assertEqual(self.client.refusal(state=base64.b64encode(data).decode()), 400, len(data))
        at = file.index(b'"model"') + 12
        self.assertIn(self.client.ask("PUT", place, flipped(at))[0], (400, 409))
        # The one that was there has not gone.
        self.assertEqual(self.client.ask("GET", place), (200, file))
        self.assertEqual(self.client.ask("DELETE", place)[0], 200)

    def test_sizes_and_imports_have_limits(self):
        with Server(arguments.hippodrome, arguments.models, "--max-state-bytes", "4096") as server:
            client = Client(server)
            self.assertEqual(client.ask("PUT", f"/v1/states/{UNKNOWN}", bytes(5000))[0], 413)
            self.assertEqual(client.refusal(state=base64.b64encode(bytes(5000)).decode()), 413)
            state = client.complete(prompt=TURNS[0], return_state="inline")["state"]
            self.assertGreater(state["bytes"], 4096)
            self.assertNotIn("data", state)
        with Server(arguments.hippodrome, arguments.models, "--state-import", "off") as server:
            client = Client(server)
            self.assertEqual(client.ask("PUT", f"/v1/states/{UNKNOWN}", b"x")[0], 403)
            self.assertEqual(client.refusal(state=base64.b64encode(b"x").decode()), 403)
            handle = client.complete(prompt=TURNS[0], return_state="handle")["state"]["handle"]
            self.assertEqual(len(ids(client.complete(state=handle))), TOKENS)

    def test_half_the_size(self):
        """Rounded, and labelled so for good; over gRPC too."""
        prompt = self.client.tokens(TURNS[0])
        whole = self.client.complete(prompt=prompt, return_state="inline")["state"]
        half = self.client.complete(prompt=prompt, return_state="inline", state_dtype="bf16")["state"]
        self.assertLess(half["bytes"], 0.7 * whole["bytes"])
        self.assertEqual([whole["exact"], half["exact"]], [True, False])
        self.assertEqual(half["position"], whole["position"])
        later = self.client.complete(prompt=" He", state=half["data"], return_state="handle")["state"]
        self.assertFalse(later["exact"])
        again = self.client.complete(prompt=" He", state=later["handle"], return_state="handle")["state"]
        self.assertFalse(again["exact"])
        self.assertEqual(self.client.refusal(prompt="a", return_state="handle", state_dtype="f16"), 400)
        self.assertEqual(self.client.refusal(prompt="a", state_dtype="bf16"), 400)
        number, nested = grpc_messages.number, grpc_messages.nested
        request = grpc_messages.generate_message(TURNS[0], TOKENS) + number(22, 2)
        sizes = []
        for dtype in (0, 1):
            status, messages = self.client.grpc(grpc_messages.GENERATE, request + number(27, dtype))
            self.assertEqual(status, OK)
            sizes.append(len(next(nested(messages[-1], 7, 6))))
        self.assertEqual(sizes, [whole["bytes"], half["bytes"]])
        self.assertEqual(self.client.grpc(grpc_messages.GENERATE, request + number(27, 2))[0], INVALID_ARGUMENT)

    def test_a_large_file_in_a_request(self):
        """Beside as much as other bodies have; what is no state has no more room than elsewhere."""
        prompt = [5 + i * i % 1000 for i in range(5000)]
        state = self.client.complete(prompt=prompt, max_tokens=1, return_state="inline")["state"]
        self.assertGreater(len(state["data"]), 9 * MIB)
        kept = f"/v1/states/{UNKNOWN[1:]}2"
        self.assertEqual(self.client.ask("PUT", kept, base64.b64decode(state["data"]))[0], 200)
        expected = ids(self.client.complete(state=kept[-32:]))
        self.assertEqual(ids(self.client.complete(state=state["data"])), expected)
        several = self.client.complete(state=state["data"], prompt=[[5, 6], [7]])
        self.assertEqual(len(several["choices"]), 2)
        large = "a" * (9 * MIB)
        for fields in ({"prompt": large}, {"state": state["data"], "prompt": large}, {"x": {"y": large}},
                       {"state": state["data"], "prompt": [1] * (3 * MIB)}):
            self.assertEqual(self.client.refusal(**fields), 413)
        damaged = state["data"][:9 * MIB] + "AAAA" + state["data"][9 * MIB + 4:]
        self.assertEqual(self.client.refusal(state=damaged), 400)
        self.assertEqual(self.client.ask("POST", "/tokenize", json.dumps({"prompt": large}))[0], 413)
        with Server(arguments.hippodrome, arguments.models, "--state-import", "off") as server:
            self.refused_early(server, 8 * MIB)
        with Server(arguments.hippodrome, arguments.models, "--max-state-bytes", str(3 * MIB)) as server:
            self.refused_early(server, 12 * MIB)

    def refused_early(self, server, most):
        """As soon as its length is announced, or has come."""
        head = http_peers.HEAD.format("/v1/completions")
        status, _ = server.send((head + f"Content-Length: {most + 1}\r\n\r\n").encode())
        self.assertEqual(status, 413)
        piece = b"%x\r\n" % MIB + b" " * MIB + b"\r\n"
        chunks = (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + piece * (most // MIB + 1)
        self.assertIn(server.send(chunks)[0], (413, 0))  # its answer may be lost where it closes

    def test_going_back(self):
        """A turn that is undone was not there: the same text, bit for bit at a checkpoint."""
        with Server(arguments.hippodrome, arguments.models, "--state-checkpoints", "8") as server:
            client = Client(server)
            prompt = self.client.tokens(TURNS[0])
            tokens = 8 - len(prompt) % 8 + 8 + 1  # the last one is not in the state
            first = client.complete(prompt=prompt, max_tokens=tokens, return_state="handle")
            position = first["state"]["position"]
            self.assertEqual(position % 8, 0)
            new = self.client.tokens(TURNS[2])
            wanted = {"max_tokens": 20, "logprobs": 1, "return_state": "handle"}
            expected = client.complete(prompt=new, state=first["state"]["handle"], **wanted)
            turn = client.complete(prompt=TURNS[1], max_tokens=30, state=first["state"]["handle"],
                                   return_state="handle")["state"]["handle"]
            last = ids(first)[-1:]
            back = client.complete(prompt=last + new, state=turn, position=position, **wanted)
            self.assertEqual(back["choices"][0]["logprobs"]["token_logprobs"],
                             expected["choices"][0]["logprobs"]["token_logprobs"])
            self.assertEqual(ids(back), ids(expected))
            self.assertTrue(back["state"]["exact"])
            self.assertEqual(back["usage"], expected["usage"])
            self.assertEqual(back["usage"]["prompt_tokens_details"]["cached_tokens"], position)
            # Between two checkpoints the rest is taken in again.
            between = client.complete(prompt=new, state=turn, position=position + 3, **wanted)
            self.assertEqual(between["usage"]["prompt_tokens_details"]["cached_tokens"], position)
            self.assertFalse(between["state"]["exact"])
            # Back to the beginning there is nothing of the state.
            cold = client.complete(prompt=prompt, **wanted)
            again = client.complete(prompt=prompt, state=turn, position=0, **wanted)
            self.assertEqual(again["choices"][0]["logprobs"]["token_logprobs"],
                             cold["choices"][0]["logprobs"]["token_logprobs"])
            # Over gRPC it is the same.
            text, number = grpc_messages.text, grpc_messages.number
            request = (grpc_messages.generate_message(TURNS[2], 20) + text(20, turn) +
                       number(21, position + 3))
            status, messages = client.grpc(grpc_messages.GENERATE, request)
            self.assertEqual([status, len(messages)], [OK, 20])
            self.assertEqual(client.grpc(grpc_messages.GENERATE, request + number(21, 10**6))[0], INVALID_ARGUMENT)

    def state_key(self, name, text):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return path

    def test_a_server_with_a_key_takes_its_own_states_alone(self):
        own, other = self.state_key("own", "k" * 40 + "\n"), self.state_key("other", "o" * 40 + "\n")
        store = os.path.join(self.folder, "signed")
        unsigned = self.client.complete(prompt=TURNS[0], return_state="inline")["state"]["data"]
        place = f"/v1/states/{UNKNOWN}"

        def refused(client, file, state=None):
            """By the name of the field, in each way in."""
            answers = [client.ask("PUT", place, base64.b64decode(file)),
                       client.ask("POST", "/v1/completions", json.dumps({"state": state or file, "max_tokens": 1}))]
            for status, text in answers:
                self.assertEqual(status, 400, text)
                self.assertIn(b"signature", text)

        with Server(arguments.hippodrome, arguments.models, "--state-store", store, "--state-key", own) as server, \
                Server(arguments.hippodrome, arguments.models, "--state-store", store, "--state-key", own) as twin, \
                Server(arguments.hippodrome, arguments.models, "--state-store", store, "--state-key", other) as stranger:
            client = Client(server)
            signed = client.complete(prompt=TURNS[0], return_state="inline")["state"]["data"]
            self.assertIn(b'"signature"', base64.b64decode(signed)[:4096])
            kept = client.complete(prompt=TURNS[0], return_state="handle")["state"]["handle"]
            expected = ids(client.complete(prompt=" He", state=kept))
            file = client.ask("GET", f"/v1/states/{kept}")[1]
            self.assertIn(b'"signature"', file[:4096])
            for friend in (client, Client(twin)):
                self.assertEqual(ids(friend.complete(prompt=" He", state=kept)), expected)
                self.assertEqual(ids(friend.complete(prompt=" He", state=signed)), expected)
                self.assertEqual(friend.ask("PUT", place, file)[0], 200)
                refused(friend, unsigned)
            refused(Client(stranger), signed, kept)
            # A new key is in force after SIGHUP, and what the old one signed is worth nothing then.
            self.state_key("own", "n" * 40 + "\n")
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(http_peers.wait_until(lambda: client.refusal(state=kept) == 400))
            refused(client, signed)
        # Without a key a signature is no fault.
        self.assertEqual(ids(self.client.complete(prompt=" He", state=signed)), expected)

    def test_requests_that_do_not_fit(self):
        client = self.client
        answer = client.complete(prompt=TURNS[0], return_state="handle")["state"]
        handle, position = answer["handle"], answer["position"]
        self.assertEqual(client.refusal(state=handle, position=position), 200)
        self.assertEqual(client.refusal(prompt="a", state=handle, position=position - 1), 200)
        for wrong in (-1, position + 1):
            self.assertEqual(client.refusal(prompt="a", state=handle, position=wrong), 400)
        self.assertEqual(client.refusal(prompt="a", position=0), 400)
        self.assertEqual(client.refusal(state=UNKNOWN), 404)
        self.assertEqual(client.refusal(state=UNKNOWN, stream=True), 404)
        self.assertEqual(client.refusal(state="short"), 400)
        self.assertEqual(client.refusal(prompt="a", return_state="handle", n=2), 400)
        self.assertEqual(client.refusal(prompt="a", return_state="handle", state_ttl=0), 400)
        self.assertEqual(client.refusal(prompt="a", return_state="elsewhere"), 400)
        self.assertEqual(client.ask("GET", "/v1/states/short")[0], 400)
        self.assertEqual(client.ask("PUT", f"/v1/states/{UNKNOWN}?ttl=3", b"x")[0], 400)

    def test_a_handle_lives_as_long_as_was_asked(self):
        handle = self.client.complete(prompt=TURNS[0], return_state="handle", state_ttl=1)["state"]["handle"]
        self.assertTrue(http_peers.wait_until(lambda: self.client.refusal(state=handle) == 404))
        listed = self.client.json("GET", "/v1/states")["data"]
        self.assertNotIn(handle, [state["handle"] for state in listed])

    def test_a_handle_is_its_keys_alone(self):
        secrets, listed = {}, []
        for name in ("anna", "bert"):
            secrets[name], entry = api_keys.new(arguments.hippodrome, name)
            listed.append(entry)
        path = os.path.join(self.folder, "keys.json")
        api_keys.write(path, listed)
        with Server(arguments.hippodrome, arguments.models, "--api-keys", path, key=secrets["anna"]) as server:
            anna, bert = (Client(server, secrets[name]) for name in ("anna", "bert"))
            handle = anna.complete(prompt=TURNS[0], return_state="handle")["state"]["handle"]
            place = f"/v1/states/{handle}"
            file = anna.ask("GET", place)[1]
            for client, status in ((bert, 404), (anna, 200)):
                self.assertEqual(client.refusal(state=handle), status)
                self.assertEqual(client.ask("GET", place)[0], status)
                self.assertEqual(client.ask("POST", f"{place}/fork")[0], status)
                listed = [state["handle"] for state in client.json("GET", "/v1/states")["data"]]
                self.assertEqual(handle in listed, client is anna)
                grpc = OK if client is anna else NOT_FOUND
                self.assertEqual(client.grpc(STATES + "Get", grpc_messages.text(1, handle))[0], grpc)
                request = grpc_messages.generate_message("a", 1) + grpc_messages.text(20, handle)
                self.assertEqual(client.grpc(grpc_messages.GENERATE, request)[0], grpc)
            # What one key puts where another has something is another state.
            self.assertEqual(bert.ask("PUT", place, file)[0], 200)
            self.assertEqual(bert.ask("DELETE", place)[0], 200)
            self.assertEqual(bert.ask("DELETE", place)[0], 404)
            self.assertEqual(anna.ask("GET", place), (200, file))
            self.assertEqual(anna.ask("DELETE", place)[0], 200)
            self.assertEqual(anna.ask("GET", place)[0], 404)

    def test_grpc_does_the_same(self):
        text, nested = grpc_messages.text, grpc_messages.nested
        request = grpc_messages.generate_message(TURNS[0], TOKENS)
        wants = grpc_messages.number(22, 1)
        status, messages = self.client.grpc(grpc_messages.GENERATE, request + wants)
        self.assertEqual(status, OK)
        self.assertEqual([len(list(nested(message, 7))) for message in messages], [0] * (TOKENS - 1) + [1])
        handle = next(nested(messages[-1], 7, 1)).decode()
        # Over HTTP it is the same state.
        by_http = ids(self.client.complete(prompt=" He", state=handle))
        status, found = self.client.grpc(STATES + "Get", text(1, handle))
        self.assertEqual(status, OK)
        pieces = [next(nested(message, 1)) for message in found]
        self.assertLessEqual(max(map(len, pieces)), MIB)
        file = b"".join(pieces)
        self.assertEqual(file, self.client.ask("GET", f"/v1/states/{handle}")[1])
        parts = [text(3, file[at:at + 30000]) for at in range(0, len(file), 30000)]
        status, put = self.client.grpc(STATES + "Put", *parts)
        self.assertEqual(status, OK)
        copy = next(nested(put[0], 1)).decode()
        self.assertEqual(len(copy), 32)
        self.assertEqual(ids(self.client.complete(prompt=" He", state=copy)), by_http)
        status, forks = self.client.grpc(STATES + "Fork", text(1, copy) + grpc_messages.number(2, 2))
        self.assertEqual([status, len(list(nested(forks[0], 1)))], [OK, 2])
        listed = [state for message in self.client.grpc(STATES + "List", b"")[1] for state in nested(message, 1, 1)]
        self.assertIn(copy.encode(), listed)
        self.assertEqual(self.client.grpc(STATES + "Delete", text(1, copy))[0], OK)
        self.assertEqual(self.client.grpc(STATES + "Delete", text(1, copy))[0], NOT_FOUND)
        self.assertEqual(self.client.grpc(STATES + "Put", text(3, file[:-1]))[0], INVALID_ARGUMENT)
        # A file in the request, and nothing new.
        for sent, status in ((file, OK), (file[:-1], INVALID_ARGUMENT)):
            whole = text(1, "h3-demo") + grpc_messages.number(4, 1) + text(20, sent)
            self.assertEqual(self.client.grpc(grpc_messages.GENERATE, whole)[0], status)

    def test_prompts_that_begin_alike_share_what_they_take_in(self):
        secrets, listed = {}, []
        for name in ("anna", "bert"):
            secrets[name], entry = api_keys.new(arguments.hippodrome, name)
            listed.append(entry)
        path = os.path.join(self.folder, "sharers.json")
        api_keys.write(path, listed)
        with Server(arguments.hippodrome, arguments.models, "--api-keys", path, "--prefix-slots", "8",
                    key=secrets["anna"]) as server:
            anna, bert = (Client(server, secrets[name]) for name in ("anna", "bert"))
            prompt = [5 + i % 100 for i in range(400)]
            cached = lambda client, **more: (
                client.complete(prompt=prompt, max_tokens=4, logprobs=1, **more))
            of = lambda answer: answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            cold = cached(anna)
            self.assertEqual(of(cold), 0)
            self.assertEqual(of(cached(anna, cache_prompt=False)), 0)
            self.assertEqual(of(cached(anna, cache_salt="other")), 0)
            self.assertEqual(of(cached(bert)), 0)
            warm = cached(anna)
            self.assertGreaterEqual(of(warm), 392)
            self.assertEqual(warm["choices"][0]["logprobs"], cold["choices"][0]["logprobs"])
            # A mark is where a prompt that goes on otherwise finds a state.
            self.assertEqual(of(cached(anna, cache_salt="marks", cache_marks=[300])), 0)
            other = anna.complete(prompt=prompt[:310] + [7] * 50, cache_salt="marks")
            self.assertEqual(of(other), 296)
        self.assertEqual(self.client.refusal(prompt="a", cache_marks=[5]), 400)
        self.assertEqual(self.client.refusal(prompt="a", cache_marks=[1] * 65), 400)
        self.assertEqual(self.client.refusal(prompt="a", cache_salt="s" * 257), 400)

    def test_a_directory_outlives_the_server(self):
        store = os.path.join(self.folder, "states")
        with Server(arguments.hippodrome, arguments.models, "--state-store", store) as server:
            client = Client(server)
            _, handle = client.conversation()
            expected = ids(client.complete(prompt=" He", state=handle))
            server.process.kill()
        with Server(arguments.hippodrome, arguments.models, "--state-store", store) as server:
            client = Client(server)
            self.assertIn(handle, [state["handle"] for state in client.json("GET", "/v1/states")["data"]])
            self.assertEqual(ids(client.complete(prompt=" He", state=handle)), expected)


if __name__ == "__main__":
    arguments = http_peers.arguments()
    unittest.main(argv=sys.argv[:1])
