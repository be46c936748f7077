"""Tests which servers are asked, and how often, and how parts of a text become one, with servers of a script.

  core_test.py
"""

import json
import unittest

from fakes import Scripted, choice, ok, refusal, state, stream, usage  # first: it finds the packages

import httpx
from hippodrome_client import errors, requests
from hippodrome_client.conversation import Turns
from hippodrome_client.plumbing import run

MODELS = ok({"data": [{"id": "bigs", "architecture": "bigs", "created": 1, "max_model_len": 128, "head": "none"},
                      {"id": "h3", "architecture": "h3", "created": 1, "max_model_len": None}]})
RESET = httpx.ReadError("reset")
END = {"choices": [], "usage": usage(3, 4)}


def text_of(pieces):
    return "".join(piece.text for piece in pieces)


class AttemptsTest(unittest.TestCase):
    def test_what_is_sent_again(self):
        given = Scripted([refusal(429), refusal(502), refusal(503), refusal(504), httpx.ConnectError("no"), RESET,
                          httpx.RemoteProtocolError("closed"), (200, {}, [b'{"pro']), (200, {}, [b"{", RESET]),
                          ok({"prompt": "text"})])
        self.assertEqual(run(given.core.detokenize("m", [1])), "text")
        self.assertEqual(len(given.pauses), 9)
        self.assertEqual(given.outcomes(), [
            "HTTP 429", "HTTP 502", "HTTP 503", "HTTP 504", "HTTP broken: ConnectError", "HTTP broken: ReadError",
            "HTTP broken: RemoteProtocolError", "HTTP broken: JSONDecodeError", "HTTP broken: ReadError", "ok"])
        self.assertEqual([attempt.answered for attempt in given.attempts],
                         [True] * 4 + [False] * 3 + [True] * 3)
        self.assertEqual(len({attempt.id for attempt in given.attempts}), 10)
        self.assertEqual([headers["x-request-id"] for _, _, headers, _ in given.servers[0].requests],
                         [attempt.id for attempt in given.attempts])

    def test_what_is_not(self):
        for status, kind in ((400, errors.InvalidRequestError), (401, errors.AuthenticationError),
                             (403, errors.PermissionDeniedError), (404, errors.NotFoundError),
                             (409, errors.InvalidRequestError), (413, errors.InvalidRequestError),
                             (500, errors.ServerError), (301, errors.InvalidRequestError)):
            given = Scripted([refusal(status, code="some_code", message="why", param="logprobs")])
            with self.assertRaisesRegex(kind, "why") as raised:
                run(given.core.models())
            error = raised.exception
            self.assertEqual((error.code, error.param, error.status, error.request_id),
                             ("some_code", "log_probabilities", status, given.attempts[0].id))
        for failure in (httpx.ReadTimeout("slow"), httpx.WriteTimeout("slow")):
            with self.assertRaises(errors.RequestTimeoutError):
                run(Scripted([failure]).core.models())
        with self.assertRaises(errors.InvalidRequestError):
            run(Scripted([httpx.LocalProtocolError("header")]).core.models())

    def test_errors_of_balancers(self):
        given = Scripted([(403, {}, [b"<html>", b"forbidden"])])
        with self.assertRaisesRegex(errors.PermissionDeniedError, "HTTP 403: <html>forbidden"):
            run(given.core.models())

    def test_waits_as_long_as_the_server_says(self):
        given = Scripted([refusal(503, 7), MODELS])
        run(given.core.models())
        self.assertEqual(given.pauses, [7])
        with self.assertRaises(errors.RetryError):
            run(Scripted([refusal(503, 7), MODELS], retry_seconds=5).core.models())

    def test_asks_the_next_server_meanwhile(self):
        given = Scripted([refusal(503, 30), MODELS], [MODELS, MODELS, RESET])
        for _ in range(2):
            run(given.core.models())
        self.assertLess(given.pauses[0], 1)
        self.assertEqual([len(server.requests) for server in given.servers], [1, 2])  # it stays where it was answered
        run(given.core.models())
        self.assertAlmostEqual(sum(given.pauses), 30)
        self.assertEqual([len(server.requests) for server in given.servers], [2, 3])

    def test_the_second_delete_finds_nothing(self):
        run(Scripted([RESET, refusal(404)]).core.delete_state("a" * 32))
        with self.assertRaises(errors.NotFoundError):
            run(Scripted([refusal(404)]).core.delete_state("a" * 32))

    def test_puts_under_one_handle(self):
        given = Scripted([RESET, ok(state("h", 1))])
        run(given.core.put_state(b"file", None, 5))
        (_, first, _, body), (_, second, _, _) = given.servers[0].requests
        self.assertEqual(first, second)
        self.assertRegex(first, r"^/v1/states/[0-9a-f]{32}\?state_ttl=5$")
        self.assertEqual(body, b"file")


class StreamTest(unittest.TestCase):
    def test_goes_on_where_it_broke_off(self):
        whole = [choice("a", [1]), choice("bc", [2]), choice("d", [3]), choice("e", [4], "length"), END]
        given = Scripted([stream(*whole[:2], RESET), stream(*whole[:1], end=False),
                          stream({"error": {"message": "full", "type": "overloaded_error", "code": "unavailable"}}),
                          stream(*whole)])
        pieces = given.pieces()
        self.assertEqual([piece.text for piece in pieces], ["a", "bc", "d", "e"])
        self.assertEqual([piece.token_ids for piece in pieces], [(1,), (2,), (3,), (4,)])
        self.assertEqual((pieces[-1].finish_reason, pieces[-1].usage.completion_tokens), ("length", 4))
        self.assertEqual(given.outcomes(), ["HTTP broken: ReadError", "HTTP broken: RemoteProtocolError",
                                            "HTTP stream: unavailable", "ok"])
        self.assertAlmostEqual(given.pauses[2], 1)
        seeds = {body["seed"] for body in given.servers[0].bodies()}
        self.assertEqual(len(seeds), 1)

    def test_gives_up_where_nothing_new_comes(self):
        broken = stream(choice("a", [1]), RESET)
        given = Scripted([broken] * 1000, retry_seconds=60)
        with self.assertRaises(errors.RetryError):
            given.pieces()
        self.assertLess(given.now, 60)
        given = Scripted([stream(*(choice("a", [1]) for _ in range(i)), RESET) for i in range(200)] +
                         [stream(choice("a" * 250, [1] * 250, "stop"), END)])
        self.assertEqual(text_of(given.pieces()), "a" * 250)

    def test_another_text(self):
        given = Scripted([stream(choice("ab", [1, 2]), RESET), stream(choice("xyz", [7, 8, 9]))])
        with self.assertRaises(errors.OtherAnswerError):
            given.pieces()

    def test_errors_that_would_come_again(self):
        given = Scripted([stream(choice("a", [1]), {"error": {"message": "broke", "type": "server_error",
                                                              "code": "internal", "param": None}})])
        with self.assertRaisesRegex(errors.ServerError, "broke"):
            given.pieces()

    def test_chunks_and_lines(self):
        text = "\u2028\x0b\x0c\x85 \r"
        data = (b": waiting\n\ndata: " + json.dumps(choice(text, [1], "stop"), ensure_ascii=False).encode() +
                b"\n\ndata: " + json.dumps(END).encode() + b"\n\ndata: [DONE]\n\n")
        for size in (1, 2, 7, len(data)):
            chunks = [data[at:at + size] for at in range(0, len(data), size)]
            self.assertEqual(text_of(Scripted([(200, {}, chunks)]).pieces()), text)

    def test_left_early(self):
        given = Scripted([stream(choice("a", [1]), choice("b", [2]))])

        async def first():
            pieces = given.core.pieces("It was", {}, True)
            async for _ in pieces:
                break
            await pieces.aclose()

        run(first())
        self.assertEqual((given.outcomes(), given.servers[0].closed), (["left"], 1))


class MigratedTest(unittest.TestCase):
    def test_behind_the_prompt(self):
        given = Scripted(
            [stream(choice("a", [1]), choice("b", [2], "migrated", state=state("h1", 4)),
                    {"choices": [], "usage": usage(3, 2, 1)}),
             stream(choice("c", [3], "stop", state=state("h2", 5)), {"choices": [], "usage": usage(5, 1, 4)})])
        pieces = given.pieces(max_tokens=9, seed=4, return_state="handle", cache_marks=[1], position=2, state="h0")
        self.assertEqual(text_of(pieces), "abc")
        last = pieces[-1]
        self.assertEqual((last.usage.prompt_tokens, last.usage.completion_tokens, last.usage.cached_tokens), (3, 3, 1))
        self.assertEqual((last.finish_reason, last.state.handle), ("stop", "h2"))
        self.assertEqual([piece.finish_reason for piece in pieces], [None, None, "stop"])
        self.assertEqual(given.outcomes(), ["migrated", "ok"])
        body = given.servers[0].bodies()[1]
        self.assertEqual({name: body.get(name) for name in ("state", "max_tokens", "seed", "return_state")},
                         {"state": "h1", "max_tokens": 7, "seed": 4, "return_state": "handle"})
        for name in ("prompt", "position", "cache_marks"):
            self.assertNotIn(name, body)

    def test_within_the_prompt(self):
        given = Scripted(
            [ok({**choice("", [], "migrated", state=state("h1", 2)), "usage": usage(5, 0)}), MODELS,
             ok({"tokens": [10, 11, 12, 13, 14]}), ok({**choice("a", [1], "length"), "usage": usage(5, 1, 2)})])
        answer = run(given.core.generate("It was", {"max_tokens": 1}))
        self.assertEqual((answer.text, answer.usage.prompt_tokens, answer.usage.cached_tokens), ("a", 5, 0))
        self.assertEqual(given.servers[0].bodies()[2]["model"], "h3")
        self.assertEqual(given.servers[0].bodies()[3]["prompt"], [12, 13, 14])

    def test_before_where_an_attempt_broke_off(self):
        given = Scripted([stream(choice("abc", [1, 2, 3]), RESET),
                          stream(choice("ab", [1, 2], "migrated", state=state("h", 4)),
                                 {"choices": [], "usage": usage(3, 2)}),
                          stream(choice("cd", [3, 4], "length"), {"choices": [], "usage": usage(5, 2)})])
        pieces = given.pieces(max_tokens=4)
        self.assertEqual([piece.text for piece in pieces], ["abc", "d"])
        self.assertEqual(pieces[-1].usage.completion_tokens, 4)


class ConversationTest(unittest.TestCase):
    @staticmethod
    def say(turns, prompt):
        async def all_of():
            return [piece async for piece in turns.say(prompt, False)]

        return text_of(run(all_of()))

    def test_a_state_that_is_gone(self):
        def answer(text, ids, handle):
            return ok({**choice(text, ids, "length", state=state(handle, 3)), "usage": usage(2, len(ids))})

        given = Scripted([answer("a", [1, 2], "h1"), answer("b", [3], "h2"), refusal(404, code="not_found"),
                          ok({"tokens": [10, 11]}), ok({"tokens": [12]}), ok({"tokens": [13]}),
                          answer("c", [4], None), ok({"tokens": [10, 11]}), ok({"tokens": [12]}), ok({"tokens": [13]}),
                          ok({"tokens": [14]}), answer("d", [5], "h4")])
        turns = Turns(given.core, {"model": "h3"})
        self.assertEqual([self.say(turns, prompt) for prompt in ("one", "two", "three", "four")], ["a", "b", "c", "d"])
        asked = [body for body in given.servers[0].bodies() if "return_state" in body]
        self.assertEqual([(body.get("state"), body["prompt"]) for body in asked],
                         [(None, "one"), ("h1", "two"), ("h2", "three"), (None, [10, 11, 1, 2, 12, 3, 13]),
                          (None, [10, 11, 1, 2, 12, 3, 13, 4, 14])])

    def test_no_such_model(self):
        given = Scripted([refusal(404, code="not_found")])
        with self.assertRaises(errors.NotFoundError):
            self.say(Turns(given.core, {"model": "nobody"}), "one")
        self.assertEqual(given.outcomes(), ["HTTP 404"])


class RequestsTest(unittest.TestCase):
    def test_each_has_a_seed(self):
        self.assertIn("seed", requests.generate_request("a", {}))
        self.assertEqual(requests.generate_request("a", {"seed": 0})["seed"], 0)
        self.assertNotIn("seed", requests.generate_request("a", {"state": "h"}))

    def test_what_is_none_is_left_out(self):
        self.assertEqual(requests.generate_request("", {"stop": "x", "seed": 1, "model": None}),
                         {"stop": ["x"], "seed": 1})

    def test_unknown_options(self):
        with self.assertRaisesRegex(TypeError, "max_token'"):
            requests.generate_request("a", {"max_token": 1})


if __name__ == "__main__":
    unittest.main()
