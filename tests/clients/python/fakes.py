"""Servers and time of a script: what the core of clients/python is written on, without any connection."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))

from testing import python_client

python_client.use()

from hippodrome_client import core, http_calls, plumbing


class FakeHttp:
    """Each call gets the next of `replies`: (status, headers, chunks), or an exception; an exception among the chunks
    is raised in their place."""

    def __init__(self, replies):
        self.replies, self.requests, self.closed = list(replies), [], 0

    async def open(self, method, path, headers, body):
        is_json = headers.get("content-type") == "application/json"
        self.requests.append((method, path, headers, json.loads(body) if is_json else body))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        status, headers, chunks = reply

        async def given():
            for chunk in chunks:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk

        async def close():
            self.closed += 1

        return plumbing.HttpReply(status, headers, given(), close)

    async def close(self):
        pass

    def bodies(self):
        return [body for _, _, _, body in self.requests]


class Scripted:
    """A core over one FakeHttp for each list of replies, in a time that passes while it sleeps alone. `pauses`: what it
    waited; `attempts`: what it told."""

    def __init__(self, *replies, retry_seconds=60):
        self.now, self.pauses, self.attempts = 0.0, [], []
        self.servers = [FakeHttp(each) for each in replies]

        async def sleep(seconds):
            self.pauses.append(seconds)
            self.now += seconds

        endpoints = [http_calls.HttpEndpoint(server, 300, {}) for server in self.servers]
        self.core = core.Core(endpoints, sleep, retry_seconds, self.attempts.append, lambda: self.now)

    def outcomes(self):
        return [attempt.outcome for attempt in self.attempts]

    def pieces(self, prompt="It was", **options):
        """Of a stream."""
        async def all_of():
            return [piece async for piece in self.core.pieces(prompt, options, True)]

        return plumbing.run(all_of())


def ok(body):
    return 200, {}, [json.dumps(body).encode()]


def refusal(status, retry_after=None, code="unavailable", message="no", param=None):
    error = {"error": {"message": message, "type": "t", "code": code, "param": param}}
    return status, {} if retry_after is None else {"retry-after": str(retry_after)}, [json.dumps(error).encode()]


def choice(text, ids, finish=None, **more):
    return {"choices": [{"index": 0, "text": text, "token_ids": ids, "logprobs": None, "finish_reason": finish}],
            **more}


def usage(prompt, completion, cached=0):
    return {"prompt_tokens": prompt, "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached}}


def stream(*events, end=True):
    """A reply in which each event is a chunk."""
    chunks = [event if isinstance(event, Exception) else b"data: " + json.dumps(event).encode() + b"\n\n"
              for event in events]
    return 200, {}, chunks + [b"data: [DONE]\n\n"] * end


def state(handle, position):
    return {"handle": handle, "position": position, "bytes": 9, "exact": True, "expires_at": None}
