"""Requests of every kind at once, over HTTP and gRPC: answered, refused, cut short and given up."""

import contextlib
import json
import threading

from testing.grpc_messages import (EMBED, GENERATE, SCORE, address_of, embed_message, generate_message,
                           open_call, score_message)
from testing.http_peers import Connection, generate, request
from testing import raw_http2

CONTEXT = "The king lived in a castle by the sea."


def post(path, **body):
    return request(path, json.dumps(body).encode())


# What a server of the demo models, and of encoders named as encoder_models.make_models names them, answers.
ANSWERED = {
    "completion": generate("It was a dark night, and", 12),
    "streamed": generate("The sea was", 24, stream=True),
    "probabilities": post("/v1/completions", model="h3-demo", prompt="It was", max_tokens=4, logprobs=2),
    "text-generation-inference": post("/generate", inputs="It was", parameters={"max_new_tokens": 4}),
    "classified": post("/predict", inputs="My dogs love these treats."),
    "embedded": post("/embed", inputs="My dogs love these treats."),
    "filled": post("/fill_mask", model="filler", inputs="the [MASK] was"),
    "tagged": post("/token_classification", model="tagger", inputs=CONTEXT),
    "asked": post("/question_answering", model="answerer",
                  inputs={"question": "Who lived by the sea?", "context": CONTEXT}),
}
REFUSED = {
    "no JSON": request("/v1/completions", b"{"),
    "no such model": post("/v1/completions", model="none", prompt="It was"),
    "never fits": generate("It was", 16_000_000),
    "no such path": post("/nothing"),
    "no HTTP": b"POST /v1/completions\r\n\r\n",
}
# With a key that has none of these rights, where the server has keys.
FORBIDDEN = {
    "no key": (generate("It was", 1), None),
    "another's model": (generate("It was", 1), "bounded"),
    "too often": (post("/embed", inputs="a word"), "bounded"),
}
RPCS = ((GENERATE, generate_message("It was a dark night, and", 12)),
        (SCORE, score_message("It was a dark night, and", 3)), (EMBED, embed_message(3)))


class _Client:
    """Of `server`, with its `keys`: {name: secret}, or none."""

    def __init__(self, server, keys, count, ended):
        self.server, self.keys, self.count, self.ended = server, keys, count, ended

    def metadata(self, key="app"):
        return {"authorization": f"Bearer {self.keys[key]}"} if self.keys else {}

    def send(self, client, message, key="app"):
        field = f"Authorization: Bearer {self.keys[key]}\r\n" if self.keys and key else ""
        client.sendall(message.replace(b"Host: h\r\n", b"Host: h\r\n" + field.encode(), 1))

    def ask(self, kinds):
        while not self.ended.wait(0.02):
            for kind, message in kinds.items():
                with contextlib.suppress(OSError), Connection(self.server.http) as client:
                    self.send(client, message)
                    self.count(kind, client.answer()[0])

    def ask_without_right(self):
        while self.keys and not self.ended.wait(0.02):
            for kind, (message, key) in FORBIDDEN.items():
                with contextlib.suppress(OSError), Connection(self.server.http) as client:
                    self.send(client, message, key)
                    self.count(kind, client.answer()[0])

    def connect(self, **more):
        return raw_http2.Connection(address_of(self.server), **more)

    def call(self):
        while not self.ended.is_set():
            for path, message in RPCS:
                with contextlib.suppress(OSError), self.connect() as connection:
                    self.count(path, connection.call(path, message, **self.metadata()))
            with contextlib.suppress(OSError), self.connect() as connection:
                message = generate_message("It was", 20000)
                self.count("deadline", connection.call(GENERATE, message, grpc_timeout="50m",
                                                       **self.metadata()))

    def leave(self):
        """Begins streams, and leaves in the middle."""
        while not self.ended.wait(0.05):
            with contextlib.suppress(OSError):
                with Connection(self.server.http, source="127.0.0.2") as client:
                    self.send(client, generate("The old man and", 100000, stream=True), "crowd")
                    client.recv(4096)
                    self.count("left over HTTP", 0)
                with self.connect(source="127.0.0.2") as connection:
                    open_call(connection, GENERATE, generate_message("The old man and", 100000),
                              **self.metadata("crowd"))
                    next(connection.frames())
                    self.count("left over gRPC", 0)

    def crowd(self):
        """More streams at once than the queue takes."""
        while not self.ended.is_set():
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(Connection(self.server.http, source="127.0.0.4"))
                           for _ in range(24)]
                for client in clients:
                    self.send(client, generate("The storm", 64), "crowd")
                for client in clients:
                    self.count("crowd", client.answer()[0])


class MixedTraffic:
    """All of it, from entering to leaving. `counts`: {(kind, status): how often}, with HTTP's status or
    gRPC's."""

    def __init__(self, server, keys=None):
        """`keys`: of a server that has keys, the secrets of "app" and "crowd", which may run all, and of
        "bounded", which may run bigs-demo alone, and once in a while."""
        self.counts, self.lock, self.ended = {}, threading.Lock(), threading.Event()
        client = _Client(server, keys, self._count, self.ended)
        work = [(client.ask, ANSWERED), (client.ask, REFUSED), (client.ask_without_right,),
                (client.call,), (client.leave,), (client.crowd,)]
        self.threads = [threading.Thread(target=run, args=more) for run, *more in work]

    def _count(self, kind, status):
        with self.lock:
            self.counts[kind, status] = self.counts.get((kind, status), 0) + 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
