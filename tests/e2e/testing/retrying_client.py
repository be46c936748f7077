"""Clients that follow the rule of docs/replicas.md, by the package of clients/python, and remember what they sent."""

import contextlib

import grpc

from testing import python_client

python_client.use()

import hippodrome_client


def serves(address):
    """Whether grpc.health.v1 says so of whoever answers there."""
    with grpc.insecure_channel(address) as channel, contextlib.suppress(grpc.RpcError):
        return channel.unary_unary("/grpc.health.v1.Health/Check", None, None)(b"", timeout=10) == b"\x08\x01"
    return False


class Client:
    """Of one thread. `protocol`: "http" or "grpc"; `address`: of it; `attempts`: all that it made."""

    def __init__(self, protocol, address, seconds):
        """For so long a request is tried again."""
        self.attempts = []
        self.client = hippodrome_client.Client(
            **{protocol: ("http://" if protocol == "http" else "") + address}, retry_seconds=seconds,
            on_attempt=self.attempts.append)

    def complete(self, request):
        """The text of an answer to what a body of /v1/completions may ask for, and the state after it where
        `return_state` asks for one."""
        options = {name: value for name, value in request.items() if name not in ("prompt", "stream")}
        if not request.get("stream"):
            answer = self.client.generate(request.get("prompt"), **options)
            return answer.text, answer.state
        pieces = list(self.client.generate(request.get("prompt"), stream=True, **options))
        return "".join(piece.text for piece in pieces), pieces[-1].state


@contextlib.contextmanager
def client(protocol, address, seconds):
    made = Client(protocol, address, seconds)
    try:
        yield made
    finally:
        made.client.close()
