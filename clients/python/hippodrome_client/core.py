"""What both clients do, written once: which server is asked, what is asked again, and how parts of a text become one.

Coroutines over the parts of plumbing.py; drivers.py has these.
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Any, Callable, Optional, TypeVar, Union, cast

from .errors import HippodromeError, NotFoundError
from .grpc_calls import GrpcEndpoint
from .http_calls import HttpEndpoint, first_decoder
from .plumbing import Sleep, closing
from .requests import (DEFAULT_MAX_TOKENS, Aggregation, GenerateRequest, Inputs, Prompt, Truncate, generate_request,
                       handle_of, input_list)
from .results import (Answers, Attempt, Classification, Embedding, FilledMasks, Generation, Model, Piece, Score, State,
                      StoredState, Tags, Usage)
from .retrying import Again, Call, Had, Patience

T = TypeVar("T")

Endpoint = Union[HttpEndpoint, GrpcEndpoint]
# Fields that are of a request's own prompt and state: what goes on from it has others.
_OF_THE_BEGINNING = ("prompt", "position", "cache_marks", "score_prompt")


class Core:
    """`endpoints`: asked in turn, each as long as it answers. `on_attempt` is told of every request that was sent."""

    def __init__(self, endpoints: Sequence[Endpoint], sleep: Sleep, retry_seconds: float,
                 on_attempt: Optional[Callable[[Attempt], None]], clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoints = endpoints
        self._turn = 0
        self._sleep = sleep
        self._retry_seconds = retry_seconds
        self._on_attempt = on_attempt
        self._clock = clock

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.close()

    async def _attempts(self, ask: Callable[[Endpoint, Call], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """What the first attempt that does not fail gives, behind what others gave before. Whatever is given counts as
        progress."""
        patience = Patience(self._retry_seconds, self._clock)
        for number in itertools.count(1):
            endpoint, call = self._endpoints[self._turn], Call(number)
            try:
                async with closing(ask(endpoint, call)) as results:
                    async for result in results:
                        patience.progressed()
                        yield result
                if call.outcome == "left":
                    call.outcome = "ok"
                return
            except Again as failed:
                again = failed
            except HippodromeError as error:
                if call.outcome == "left":
                    call.outcome = error.code
                raise
            finally:
                if self._on_attempt is not None:
                    self._on_attempt(call.ended())
            endpoint.rests_until = self._clock() + again.after
            self._turn = (self._endpoints.index(endpoint) + 1) % len(self._endpoints)
            rest = self._endpoints[self._turn].rests_until - self._clock()
            await self._sleep(patience.pause(again, max(0.0, rest)))

    async def _once(self, ask: Callable[[Endpoint, Call], Awaitable[T]]) -> T:
        async def one(endpoint: Endpoint, call: Call) -> AsyncGenerator[T, None]:
            yield await ask(endpoint, call)

        return [result async for result in self._attempts(one)][0]

    async def pieces(self, prompt: Optional[Prompt], options: Any, stream: bool) -> AsyncGenerator[Piece, None]:
        """A text. Where servers hand it over to others, these go on with it."""
        request = generate_request(prompt, options)
        had, before = Had(), Usage(0, 0, 0)

        async def new(endpoint: Endpoint, call: Call) -> AsyncGenerator[Piece, None]:
            had.begin()
            async with closing(endpoint.generate(request, stream, call)) as given:
                async for piece in given:
                    if piece.finish_reason == "migrated":
                        call.outcome = "migrated"
                    fresh = had.new(piece)
                    if fresh != Piece():
                        yield fresh

        while True:
            last: Optional[Piece] = None
            async with closing(self._attempts(new)) as given:
                async for piece in given:
                    if piece.finish_reason is not None:
                        last = piece
                    else:
                        yield piece
            if last is None or last.usage is None:
                raise HippodromeError("the answer ended without its last part", "internal")
            usage = together(before, last.usage)
            if last.finish_reason != "migrated" or last.state is None:
                yield dataclasses.replace(last, usage=usage)
                return
            if last.text or last.token_ids:
                yield dataclasses.replace(last, finish_reason=None, usage=None, state=None)
            request = await self._rest(request, last.usage, last.state)
            had.go_on()
            before = usage

    async def _rest(self, request: GenerateRequest, usage: Usage, state: State) -> GenerateRequest:
        """What another server is to be asked for: docs/state.md, "When a server stops"."""
        rest = {name: value for name, value in request.items() if name not in _OF_THE_BEGINNING}
        rest["state"] = state.handle
        rest["max_tokens"] = request.get("max_tokens", DEFAULT_MAX_TOKENS) - usage.completion_tokens
        left = usage.prompt_tokens - state.position
        if left > 0:
            prompt = request.get("prompt", ())
            rest["prompt"] = (await self.ids_of(request.get("model"), prompt))[-left:]
        return cast(GenerateRequest, rest)

    async def generate(self, prompt: Optional[Prompt], options: Any, stream: bool = False) -> Generation:
        return whole([piece async for piece in self.pieces(prompt, options, stream)])

    async def ids_of(self, model: Optional[str], prompt: Prompt) -> list[int]:
        """As a decoder takes them."""
        if not isinstance(prompt, str):
            return list(prompt)
        return await self.tokenize(model or first_decoder(await self.models()), prompt, True)

    async def score(self, context: Prompt, continuations: Sequence[Prompt], model: Optional[str],
                    per_token: bool) -> list[Score]:
        return await self._once(lambda server, call: server.score(model, context, continuations, per_token, call))

    async def tokenize(self, model: Optional[str], text: str, add_special_tokens: bool) -> list[int]:
        return await self._once(lambda server, call: server.tokenize(model, text, add_special_tokens, call))

    async def detokenize(self, model: Optional[str], token_ids: Sequence[int]) -> str:
        return await self._once(lambda server, call: server.detokenize(model, token_ids, call))

    async def models(self) -> list[Model]:
        return await self._once(lambda server, call: server.models(call))

    async def classify(self, inputs: Inputs, model: Optional[str], truncate: Optional[Truncate],
                       raw_scores: bool) -> list[Classification]:
        return await self._once(
            lambda server, call: server.classify(model, input_list(inputs), truncate, raw_scores, call))

    async def tag_tokens(self, inputs: Inputs, model: Optional[str], truncate: Optional[Truncate],
                         aggregation: Aggregation) -> list[Tags]:
        return await self._once(
            lambda server, call: server.tag_tokens(model, input_list(inputs), truncate, aggregation, call))

    async def fill_mask(self, inputs: Inputs, model: Optional[str], truncate: Optional[Truncate], top_k: Optional[int],
                        targets: Sequence[str]) -> list[FilledMasks]:
        return await self._once(
            lambda server, call: server.fill_mask(model, input_list(inputs), truncate, top_k, targets, call))

    async def answer_question(self, questions: Sequence[tuple[str, str]], model: Optional[str], top_k: Optional[int],
                              stride: Optional[int], max_answer_tokens: Optional[int], allow_no_answer: bool,
                              no_answer_threshold: Optional[float]) -> list[Answers]:
        return await self._once(
            lambda server, call: server.answer_question(model, questions, top_k, stride, max_answer_tokens,
                                                        allow_no_answer, no_answer_threshold, call))

    async def embed(self, inputs: Inputs, model: Optional[str], truncate: Optional[Truncate], normalize: bool,
                    per_token: bool) -> list[Embedding]:
        return await self._once(
            lambda server, call: server.embed(model, input_list(inputs), truncate, normalize, per_token, call))

    async def list_states(self) -> list[StoredState]:
        return await self._once(lambda server, call: server.list_states(call))

    async def get_state(self, state: Union[str, State]) -> bytes:
        handle = handle_of(state)
        return await self._once(lambda server, call: server.get_state(handle, call))

    async def put_state(self, data: bytes, handle: Optional[str], state_ttl: Optional[int]) -> State:
        """Under a handle that is drawn here, it may be sent again."""
        name = handle or secrets.token_hex(16)
        return await self._once(lambda server, call: server.put_state(data, name, state_ttl, call))

    async def delete_state(self, state: Union[str, State]) -> None:
        handle = handle_of(state)

        async def once(endpoint: Endpoint, call: Call) -> None:
            try:
                await endpoint.delete_state(handle, call)
            except NotFoundError:
                if call.number == 1:
                    raise  # else an attempt before may have deleted it

        await self._once(once)

    async def fork_state(self, state: Union[str, State], n: int) -> list[str]:
        handle = handle_of(state)
        return await self._once(lambda server, call: server.fork_state(handle, n, call))


def together(before: Usage, part: Usage) -> Usage:
    """Of a request that another one goes on from: the prompt is that of the first."""
    first = before if before.prompt_tokens > 0 else part
    return Usage(first.prompt_tokens, before.completion_tokens + part.completion_tokens, first.cached_tokens)


def whole(pieces: Sequence[Piece]) -> Generation:
    last = pieces[-1]
    assert last.finish_reason is not None and last.usage is not None, last
    return Generation("".join(piece.text for piece in pieces),
                      tuple(token for piece in pieces for token in piece.token_ids), last.finish_reason, last.usage,
                      tuple(scores for piece in pieces for scores in piece.scores),
                      tuple(scores for piece in pieces for scores in piece.prompt_scores), last.state)
