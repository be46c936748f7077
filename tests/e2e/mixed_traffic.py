"""Requests of every kind at once, over HTTP and gRPC: answered, refused, cut short and given up."""

import contextlib
import json
import threading

from grpc_messages import (EMBED, GENERATE, SCORE, address_of, embed_message, generate_message,
                           open_call, score_message)
from http_peers import Connection, generate, request
import raw_http2

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
RPCS = ((GENERATE, generate_message("It was a dark night, and", 12)),
        (SCORE, score_message("It was a dark night, and", 3)), (EMBED, embed_message(3)))


def _ask(server, kinds, count, ended):
    while not ended.wait(0.02):
        for kind, message in kinds.items():
            with contextlib.suppress(OSError), Connection(server.http) as client:
                client.sendall(message)
                count(kind, client.answer()[0])


def _call(server, count, ended):
    while not ended.is_set():
        for path, message in RPCS:
            with contextlib.suppress(OSError), raw_http2.Connection(address_of(server)) as connection:
                count(path, connection.call(path, message))
        with contextlib.suppress(OSError), raw_http2.Connection(address_of(server)) as connection:
            late = connection.call(GENERATE, generate_message("It was", 20000), grpc_timeout="50m")
            count("deadline", late)


def _leave(server, count, ended):
    """Begins streams, and leaves in the middle."""
    while not ended.wait(0.05):
        with contextlib.suppress(OSError):
            with Connection(server.http, source="127.0.0.2") as client:
                client.sendall(generate("The old man and", 100000, stream=True))
                client.recv(4096)
                count("left over HTTP", 0)
            with raw_http2.Connection(address_of(server), source="127.0.0.2") as connection:
                open_call(connection, GENERATE, generate_message("The old man and", 100000))
                next(connection.frames())
                count("left over gRPC", 0)


def _crowd(server, count, ended):
    """More streams at once than its queue takes."""
    while not ended.is_set():
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Connection(server.http, source="127.0.0.4"))
                       for _ in range(24)]
            for client in clients:
                client.sendall(generate("The storm", 64))
            for client in clients:
                count("crowd", client.answer()[0])


class MixedTraffic:
    """All of it, from entering to leaving. `counts`: {(kind, status): how often}, with HTTP's status or
    gRPC's."""

    def __init__(self, server):
        self.counts, self.lock, self.ended = {}, threading.Lock(), threading.Event()
        work = [(_ask, ANSWERED), (_ask, REFUSED), (_call,), (_leave,), (_crowd,)]
        self.threads = [threading.Thread(target=run, args=(server, *more, self._count, self.ended))
                        for run, *more in work]

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
