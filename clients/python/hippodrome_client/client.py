"""The two clients. Each method is a call of hippodrome.v1; proto/hippodrome/v1 says what its fields mean."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, TypeVar, Union, overload

from . import drivers
from .conversation import Turn, Turns
from .core import Core, Endpoint, whole
from .grpc_calls import GrpcEndpoint
from .http_calls import HttpEndpoint
from .plumbing import Grpc, Http, first, run
from .requests import Aggregation, Inputs, Prompt, Truncate
from .results import (Answers, Attempt, Classification, Embedding, FilledMasks, Generation, Model, Piece, Score, State,
                      StoredState, Tags)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .requests import GenerateOptions

C = TypeVar("C", bound="_Base")

Addresses = Union[str, Sequence[str]]


def _list(addresses: Optional[Addresses]) -> list[str]:
    return [addresses] if isinstance(addresses, str) else list(addresses or ())


class _Base:
    _http: Callable[[str, drivers.Security, float], Http]
    _grpc: Callable[[str, Optional[drivers.Security], float], Grpc]
    _sleep: Any

    def __init__(self, http: Optional[Addresses] = None, *, grpc: Optional[Addresses] = None,
                 api_key: Optional[str] = None, ca: Union[str, os.PathLike[str], None] = None,
                 certificate: Optional[tuple[str, str]] = None, timeout: float = 300.0, retry_seconds: float = 60.0,
                 on_attempt: Optional[Callable[[Attempt], None]] = None) -> None:
        """One address suffices. Several are servers of the same models: they are asked in turn, those of gRPC first,
        and each for as long as it answers.

        http: as "http://127.0.0.1:8080" or "https://HOST:PORT".
        grpc: as "127.0.0.1:50051". With TLS where `ca` is given, or as "https://HOST:PORT".
        api_key: the secret of a key, where the server asks for one.
        ca: a PEM file of authorities to trust, instead of the system's.
        certificate: PEM files of the client's certificate and its key.
        timeout: seconds that one attempt may take; over HTTP, for an answer that is no stream, that nothing may come.
        retry_seconds: for how long a request that may be sent again is, while nothing comes of it; 0: it is not.
        on_attempt: is called with an Attempt at the end of each.
        """
        security = drivers.Security(None if ca is None else os.fspath(ca), certificate)
        authorization = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        endpoints: list[Endpoint] = []
        for address in _list(grpc):
            scheme, _, place = address.rpartition("://")
            if scheme not in ("", "http", "https"):
                raise ValueError(f"grpc: {address}: expected HOST:PORT or https://HOST:PORT")
            secure = scheme == "https" or scheme == "" and ca is not None
            made = type(self)._grpc(place, security if secure else None, timeout)
            endpoints.append(GrpcEndpoint(made, list(authorization.items())))
        for url in _list(http):
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"http: {url}: expected http://HOST:PORT or https://HOST:PORT")
            endpoints.append(HttpEndpoint(type(self)._http(url, security, timeout), timeout, authorization))
        if not endpoints:
            raise ValueError("an address is needed, of http or grpc")
        self._core = Core(endpoints, type(self)._sleep, retry_seconds, on_attempt)


class Stream(Iterator[Piece]):
    """Pieces of a text as they come. Left early, the server ends its work at once: by close(), or by `with`."""

    def __init__(self, pieces: AsyncGenerator[Piece, None]) -> None:
        self._pieces = pieces

    def __next__(self) -> Piece:
        piece = run(first(self._pieces))
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        run(_close(self._pieces))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStream(AsyncIterator[Piece]):
    """As Stream."""

    def __init__(self, pieces: AsyncGenerator[Piece, None]) -> None:
        self._pieces = pieces

    async def __anext__(self) -> Piece:
        piece = await first(self._pieces)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def close(self) -> None:
        await self._pieces.aclose()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _close(pieces: AsyncGenerator[Piece, None]) -> None:
    await pieces.aclose()


async def _whole(pieces: AsyncGenerator[Piece, None]) -> Generation:
    return whole([piece async for piece in pieces])


class Client(_Base):
    """May be used by several threads at once."""

    _http = drivers.SyncHttp
    _grpc = drivers.SyncGrpc
    _sleep = staticmethod(drivers.sleep)

    @overload
    def generate(self, prompt: Optional[Prompt] = None, *, stream: Literal[False] = False,
                 **options: Unpack[GenerateOptions]) -> Generation: ...

    @overload
    def generate(self, prompt: Optional[Prompt] = None, *, stream: Literal[True],
                 **options: Unpack[GenerateOptions]) -> Stream: ...

    def generate(self, prompt: Optional[Prompt] = None, *, stream: bool = False,
                 **options: Unpack[GenerateOptions]) -> Union[Generation, Stream]:
        """The continuation of a prompt, as a whole or in pieces."""
        pieces = self._core.pieces(prompt, options, stream)
        return Stream(pieces) if stream else run(_whole(pieces))

    def conversation(self, **options: Unpack[GenerateOptions]) -> Conversation:
        """`options`: of each answer."""
        return Conversation(Turns(self._core, options))

    def score(self, context: Prompt, continuations: Sequence[Prompt], *, model: Optional[str] = None,
              per_token: bool = False) -> list[Score]:
        """How likely each of several continuations of one context is."""
        return run(self._core.score(context, continuations, model, per_token))

    def tokenize(self, text: str, *, model: Optional[str] = None, add_special_tokens: bool = True) -> list[int]:
        return run(self._core.tokenize(model, text, add_special_tokens))

    def detokenize(self, token_ids: Sequence[int], *, model: Optional[str] = None) -> str:
        return run(self._core.detokenize(model, token_ids))

    def models(self) -> list[Model]:
        return run(self._core.models())

    def classify(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                 raw_scores: bool = False) -> list[Classification]:
        """Scores of the labels of each input."""
        return run(self._core.classify(inputs, model, truncate, raw_scores))

    def tag_tokens(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                   aggregation: Aggregation = "simple") -> list[Tags]:
        """Labelled stretches of each input."""
        return run(self._core.tag_tokens(inputs, model, truncate, aggregation))

    def fill_mask(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                  top_k: Optional[int] = None, targets: Sequence[str] = ()) -> list[FilledMasks]:
        """The likeliest tokens for each [MASK] of each input."""
        return run(self._core.fill_mask(inputs, model, truncate, top_k, targets))

    def answer_question(self, questions: Sequence[tuple[str, str]], *, model: Optional[str] = None,
                        top_k: Optional[int] = None, stride: Optional[int] = None,
                        max_answer_tokens: Optional[int] = None, allow_no_answer: bool = False,
                        no_answer_threshold: Optional[float] = None) -> list[Answers]:
        """The stretches of a context that answer a question, for each pair of question and context."""
        return run(self._core.answer_question(questions, model, top_k, stride, max_answer_tokens, allow_no_answer,
                                              no_answer_threshold))

    def embed(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
              normalize: bool = True, per_token: bool = False) -> list[Embedding]:
        """The mean of the last layer over the tokens of each input, or that of each token."""
        return run(self._core.embed(inputs, model, truncate, normalize, per_token))

    @property
    def states(self) -> States:
        return States(self._core)

    def close(self) -> None:
        run(self._core.close())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class States:
    """Saved states of the client's API key."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self) -> Sequence[StoredState]:
        return run(self._core.list_states())

    def get(self, state: Union[str, State]) -> bytes:
        """The file."""
        return run(self._core.get_state(state))

    def put(self, data: bytes, *, handle: Optional[str] = None, state_ttl: Optional[int] = None) -> State:
        """Keeps a file, under a handle of 32 hexadecimal digits, or a new one."""
        return run(self._core.put_state(data, handle, state_ttl))

    def delete(self, state: Union[str, State]) -> None:
        run(self._core.delete_state(state))

    def fork(self, state: Union[str, State], n: int = 1) -> Sequence[str]:
        """Handles of copies."""
        return run(self._core.fork_state(state, n))


class Conversation:
    """Goes on from the state behind its last answer. `turns`: what was said and answered."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    @property
    def turns(self) -> Sequence[Turn]:
        return self._turns.turns

    @property
    def state(self) -> Optional[State]:
        return self._turns.state

    @overload
    def say(self, prompt: Prompt, *, stream: Literal[False] = False) -> Generation: ...

    @overload
    def say(self, prompt: Prompt, *, stream: Literal[True]) -> Stream: ...

    def say(self, prompt: Prompt, *, stream: bool = False) -> Union[Generation, Stream]:
        """The answer to what is new. In pieces, it counts when the last one has been taken."""
        pieces = self._turns.say(prompt, stream)
        return Stream(pieces) if stream else run(_whole(pieces))

    def undo(self) -> None:
        """Takes the last turn back."""
        self._turns.undo()

    def fork(self) -> Conversation:
        """Another one that begins as this one is now."""
        return Conversation(self._turns.fork())


class AsyncClient(_Base):
    """As Client, to be awaited. Of one event loop."""

    _http = drivers.AsyncHttp
    _grpc = drivers.AsyncGrpc
    _sleep = staticmethod(drivers.async_sleep)

    @overload
    async def generate(self, prompt: Optional[Prompt] = None, *, stream: Literal[False] = False,
                       **options: Unpack[GenerateOptions]) -> Generation: ...

    @overload
    async def generate(self, prompt: Optional[Prompt] = None, *, stream: Literal[True],
                       **options: Unpack[GenerateOptions]) -> AsyncStream: ...

    async def generate(self, prompt: Optional[Prompt] = None, *, stream: bool = False,
                       **options: Unpack[GenerateOptions]) -> Union[Generation, AsyncStream]:
        pieces = self._core.pieces(prompt, options, stream)
        return AsyncStream(pieces) if stream else await _whole(pieces)

    def conversation(self, **options: Unpack[GenerateOptions]) -> AsyncConversation:
        return AsyncConversation(Turns(self._core, options))

    async def score(self, context: Prompt, continuations: Sequence[Prompt], *, model: Optional[str] = None,
                    per_token: bool = False) -> list[Score]:
        return await self._core.score(context, continuations, model, per_token)

    async def tokenize(self, text: str, *, model: Optional[str] = None, add_special_tokens: bool = True) -> list[int]:
        return await self._core.tokenize(model, text, add_special_tokens)

    async def detokenize(self, token_ids: Sequence[int], *, model: Optional[str] = None) -> str:
        return await self._core.detokenize(model, token_ids)

    async def models(self) -> list[Model]:
        return await self._core.models()

    async def classify(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                       raw_scores: bool = False) -> list[Classification]:
        return await self._core.classify(inputs, model, truncate, raw_scores)

    async def tag_tokens(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                         aggregation: Aggregation = "simple") -> list[Tags]:
        return await self._core.tag_tokens(inputs, model, truncate, aggregation)

    async def fill_mask(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                        top_k: Optional[int] = None, targets: Sequence[str] = ()) -> list[FilledMasks]:
        return await self._core.fill_mask(inputs, model, truncate, top_k, targets)

    async def answer_question(self, questions: Sequence[tuple[str, str]], *, model: Optional[str] = None,
                              top_k: Optional[int] = None, stride: Optional[int] = None,
                              max_answer_tokens: Optional[int] = None, allow_no_answer: bool = False,
                              no_answer_threshold: Optional[float] = None) -> list[Answers]:
        return await self._core.answer_question(questions, model, top_k, stride, max_answer_tokens, allow_no_answer,
                                                no_answer_threshold)

    async def embed(self, inputs: Inputs, *, model: Optional[str] = None, truncate: Optional[Truncate] = None,
                    normalize: bool = True, per_token: bool = False) -> list[Embedding]:
        return await self._core.embed(inputs, model, truncate, normalize, per_token)

    @property
    def states(self) -> AsyncStates:
        return AsyncStates(self._core)

    async def close(self) -> None:
        await self._core.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncStates:
    """As States."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def list(self) -> Sequence[StoredState]:
        return await self._core.list_states()

    async def get(self, state: Union[str, State]) -> bytes:
        return await self._core.get_state(state)

    async def put(self, data: bytes, *, handle: Optional[str] = None, state_ttl: Optional[int] = None) -> State:
        return await self._core.put_state(data, handle, state_ttl)

    async def delete(self, state: Union[str, State]) -> None:
        await self._core.delete_state(state)

    async def fork(self, state: Union[str, State], n: int = 1) -> Sequence[str]:
        return await self._core.fork_state(state, n)


class AsyncConversation:
    """As Conversation."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    @property
    def turns(self) -> Sequence[Turn]:
        return self._turns.turns

    @property
    def state(self) -> Optional[State]:
        return self._turns.state

    @overload
    async def say(self, prompt: Prompt, *, stream: Literal[False] = False) -> Generation: ...

    @overload
    async def say(self, prompt: Prompt, *, stream: Literal[True]) -> AsyncStream: ...

    async def say(self, prompt: Prompt, *, stream: bool = False) -> Union[Generation, AsyncStream]:
        pieces = self._turns.say(prompt, stream)
        return AsyncStream(pieces) if stream else await _whole(pieces)

    def undo(self) -> None:
        self._turns.undo()

    def fork(self) -> AsyncConversation:
        return AsyncConversation(self._turns.fork())
