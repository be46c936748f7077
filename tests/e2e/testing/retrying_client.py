"""Clients that follow the rule of docs/replicas.md: what may be sent again, when, and what comes of a stream that broke
off. Over HTTP, and over gRPC by grpcio."""

import collections
import contextlib
import http.client
import json
import random
import time
import uuid

import grpc

from testing import grpc_messages

AGAIN_HTTP = (429, 502, 503, 504)
AGAIN_GRPC = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
# What libraries make of a call that a balancer broke off. A server's own error comes again.
BROKEN_GRPC = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED)
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds
MIGRATED = 3  # FINISH_REASON_MIGRATED

Attempt = collections.namedtuple("Attempt", "id begin end outcome")  # outcome: "ok", "migrated", or what went wrong


def serves(address):
    """Whether grpc.health.v1 says so of whoever answers there."""
    with grpc.insecure_channel(address) as channel, contextlib.suppress(grpc.RpcError):
        return channel.unary_unary("/grpc.health.v1.Health/Check", None, None)(b"", timeout=10) == b"\x08\x01"
    return False


class Again(Exception):
    """The request may be sent again, `after` seconds at the earliest. `text`: what had come of its answer."""

    def __init__(self, outcome, after=0.0, text=""):
        super().__init__(outcome)
        self.outcome, self.after, self.text = outcome, after, text


class Part:
    """What one attempt gave."""

    def __init__(self):
        self.text, self.tokens, self.migrated, self.state, self.prompt_tokens = "", 0, False, None, 0


class Client:
    """Of one thread. `attempts`: all that it made."""

    def __init__(self, seconds):
        """For so long a request is tried again."""
        self.seconds = seconds
        self.attempts = []

    def complete(self, request):
        """The text, and the state after it where `return_state` asks for one. Parts of a stream that migrated are
        put together."""
        pause, end, text = FIRST_PAUSE, time.monotonic() + self.seconds, ""
        had = ""  # of an attempt that broke off
        while True:
            key, begin = str(uuid.uuid4()), time.monotonic()
            try:
                part = self.attempt(request, key)
            except Again as again:
                self._note(key, begin, again.outcome)
                assert again.text.startswith(had) or had.startswith(again.text), (request, had, again.text)
                had = max(had, again.text, key=len)
                if time.monotonic() > end:
                    raise TimeoutError(f"{again.outcome} for {self.seconds} s") from again
                time.sleep(max(again.after, random.uniform(0, pause)))
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            self._note(key, begin, "migrated" if part.migrated else "ok")
            # The same request has the same answer: what the client had of it is its beginning.
            assert part.text.startswith(had) or part.migrated and had.startswith(part.text), (request, had, part.text)
            text += part.text
            if not part.migrated:
                return text, part.state
            had = had[len(part.text):]
            request = self._rest(request, part)

    @staticmethod
    def _rest(request, part):
        rest = {**request, "state": part.state["handle"], "max_tokens": request["max_tokens"] - part.tokens}
        # Requests of tests are short: none migrates within its prompt.
        assert part.tokens > 0 or part.state["position"] >= part.prompt_tokens, (request, vars(part))
        rest.pop("prompt", None)
        return rest

    def _note(self, key, begin, outcome):
        self.attempts.append(Attempt(key, begin, time.monotonic(), outcome))


class HttpClient(Client):
    """Streams where the request says so."""

    def __init__(self, address, seconds):
        super().__init__(seconds)
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def close(self):
        self.connection.close()

    def attempt(self, request, key):
        had = ""
        try:
            self.connection.request("POST", "/v1/completions", json.dumps(request),
                                    {"Content-Type": "application/json", "x-request-id": key})
            answer = self.connection.getresponse()
            if answer.status in AGAIN_HTTP:
                answer.read()
                raise Again(f"HTTP {answer.status}", float(answer.headers.get("Retry-After", 0)))
            if answer.status != 200:
                raise RuntimeError(f"HTTP {answer.status}: {answer.read()}")
            if not request.get("stream"):
                return self._whole(json.loads(answer.read()))
            part = Part()
            for event in self._events(answer):
                if "error" in event:
                    self._refuse(event["error"], part.text)
                for choice in event["choices"]:
                    part.text += choice["text"]
                    part.tokens += len(choice["token_ids"])
                    part.migrated |= choice["finish_reason"] == "migrated"
                part.state = event.get("state", part.state)
                had = part.text
            return part
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            # The next attempt has a connection of its own.
            self.connection.close()
            raise Again(f"HTTP broken: {type(error).__name__}", 0, had) from error

    @staticmethod
    def _refuse(error, had):
        if error["type"] not in ("overloaded_error", "rate_limit_error"):
            raise RuntimeError(str(error))
        raise Again("HTTP stream: " + error["code"], 1, had)

    @staticmethod
    def _events(answer):
        """Until the stream ends as it should."""
        for line in answer:
            if line == b"data: [DONE]\n":
                answer.read()
                return
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
        raise http.client.IncompleteRead(b"")

    @staticmethod
    def _whole(answer):
        part = Part()
        choice = answer["choices"][0]
        part.text, part.tokens = choice["text"], len(choice["token_ids"])
        part.migrated = choice["finish_reason"] == "migrated"
        part.state, part.prompt_tokens = answer.get("state"), answer["usage"]["prompt_tokens"]
        return part


class GrpcClient(Client):
    """hippodrome.v1.Generation, on a connection of its own."""

    def __init__(self, address, seconds):
        super().__init__(seconds)
        # The rule is tried here, not the library's.
        self.channel = grpc.insecure_channel(address, options=[
            ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)])
        self.generate = self.channel.unary_stream(grpc_messages.GENERATE, None, None)

    def close(self):
        self.channel.close()

    def attempt(self, request, key):
        part = Part()
        call = self.generate(grpc_messages.completion_message(request), timeout=300,
                             metadata=(("x-request-id", key),))
        try:
            for message in call:
                self._add(part, message)
        except grpc.RpcError as error:
            code = error.code()
            if code not in AGAIN_GRPC + BROKEN_GRPC:
                raise
            after = dict(error.trailing_metadata() or ()).get("retry-after", 0)
            raise Again(f"gRPC {code.name}", float(after), part.text) from error
        return part

    @staticmethod
    def _add(part, message):
        fields = dict(grpc_messages.entries(message))
        part.text += fields.get(1, b"").decode()
        part.tokens += sum(byte < 128 for byte in fields.get(2, b""))
        part.migrated |= fields.get(3) == MIGRATED
        if 7 in fields:
            state = dict(grpc_messages.entries(fields[7]))
            part.state = {"handle": state[1].decode(), "position": state[2]}


@contextlib.contextmanager
def client(kind, address, seconds):
    """`kind`: HttpClient or GrpcClient; `address`: of its protocol."""
    made = kind(address, seconds)
    try:
        yield made
    finally:
        made.close()
