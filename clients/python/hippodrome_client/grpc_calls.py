"""Calls over gRPC: messages of requests, answers and errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Optional, cast

import grpc

from . import retrying
from .errors import RequestTimeoutError, kind_of
from .plumbing import Grpc, closing, first
from .protocol import Method, message
from .requests import Aggregation, GenerateRequest, Input, Prompt, Truncate
from .results import (Answer, Answers, Candidate, Classification, Embedding, Entity, FilledMasks, FinishReason,
                      LabelScore, LikelyToken, Model, Piece, Score, State, StoredState, Tags, TokenScores, Usage)
from .retrying import Again, Call

GENERATE = Method("Generation", "Generate")
SCORE = Method("Generation", "Score")
TOKENIZE = Method("Generation", "Tokenize")
DETOKENIZE = Method("Generation", "Detokenize")
MODELS = Method("Models", "List")
CLASSIFY = Method("Encoding", "Classify")
TAG_TOKENS = Method("Encoding", "TagTokens")
FILL_MASK = Method("Encoding", "FillMask")
ANSWER_QUESTION = Method("Encoding", "AnswerQuestion")
EMBED = Method("Encoding", "Embed")
LIST_STATES = Method("States", "List")
GET_STATE = Method("States", "Get")
PUT_STATE = Method("States", "Put")
DELETE_STATE = Method("States", "Delete")
FORK_STATE = Method("States", "Fork")

FINISH_REASONS: tuple[Optional[FinishReason], ...] = (None, "stop", "length", "migrated")  # by their numbers
CHUNK = 1 << 20  # bytes of a file in a message


class GrpcEndpoint:
    """One server."""

    def __init__(self, made: Grpc, metadata: Sequence[tuple[str, str]]) -> None:
        self._grpc, self._metadata = made, metadata
        self.rests_until = 0.0  # of time.monotonic(): retry-after

    async def close(self) -> None:
        await self._grpc.close()

    async def generate(self, request: GenerateRequest, stream: bool, call: Call) -> AsyncGenerator[Piece, None]:
        async with closing(self._call(GENERATE, [generate_message(request)], call)) as answers:
            async for answer in answers:
                yield piece_of(answer)

    async def score(self, model: Optional[str], context: Prompt, continuations: Sequence[Prompt], per_token: bool,
                    call: Call) -> list[Score]:
        request = message("ScoreRequest", model=model, per_token=per_token, **prompt_field(context))
        for continuation in continuations:
            request.continuations.add(**prompt_field(continuation))
        answer = await self._one(SCORE, request, call)
        return [Score(each.log_probability, each.tokens, each.greedy, tuple(each.token_ids),
                      tuple(each.token_log_probabilities)) for each in answer.scores]

    async def models(self, call: Call) -> list[Model]:
        answer = await self._one(MODELS, message("ListModelsRequest"), call)
        return [Model(each.name, each.architecture, each.created, each.max_positions, each.head, each.attention_window,
                      each.weights, each.parameters, each.vocab_size, each.has_tokenizer, each.max_sequences,
                      tuple(each.labels), each.embedding_size, each.pad_to, each.max_batch_tokens)
                for each in answer.models]

    async def tokenize(self, model: Optional[str], text: str, add_special_tokens: bool, call: Call) -> list[int]:
        request = message("TokenizeRequest", model=model, text=text, add_special_tokens=add_special_tokens)
        return list((await self._one(TOKENIZE, request, call)).token_ids)

    async def detokenize(self, model: Optional[str], token_ids: Sequence[int], call: Call) -> str:
        request = message("DetokenizeRequest", model=model, token_ids=token_ids)
        return str((await self._one(DETOKENIZE, request, call)).text)

    async def classify(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate],
                       raw_scores: bool, call: Call) -> list[Classification]:
        request = message("ClassifyRequest", model=model, inputs=input_messages(inputs),
                          truncate=truncate_message(truncate), raw_scores=raw_scores)
        answer = await self._one(CLASSIFY, request, call)
        return [Classification(tuple(LabelScore(score.label, score.score) for score in each.scores))
                for each in answer.results]

    async def tag_tokens(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate],
                         aggregation: Aggregation, call: Call) -> list[Tags]:
        request = message("TagTokensRequest", model=model, inputs=input_messages(inputs),
                          truncate=truncate_message(truncate), aggregation="AGGREGATION_" + aggregation.upper())
        answer = await self._one(TAG_TOKENS, request, call)
        return [Tags(tuple(Entity(entity.label, entity.score, entity.word, entity.start, entity.end, entity.index)
                           for entity in each.entities)) for each in answer.results]

    async def fill_mask(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate],
                        top_k: Optional[int], targets: Sequence[str], call: Call) -> list[FilledMasks]:
        request = message("FillMaskRequest", model=model, inputs=input_messages(inputs),
                          truncate=truncate_message(truncate), top_k=top_k, targets=targets)
        answer = await self._one(FILL_MASK, request, call)
        return [FilledMasks(tuple(tuple(Candidate(one.score, one.token_id, one.token, one.sequence)
                                        for one in mask.candidates) for mask in each.masks))
                for each in answer.results]

    async def answer_question(self, model: Optional[str], questions: Sequence[tuple[str, str]], top_k: Optional[int],
                              stride: Optional[int], max_answer_tokens: Optional[int], allow_no_answer: bool,
                              no_answer_threshold: Optional[float], call: Call) -> list[Answers]:
        request = message("AnswerQuestionRequest", model=model, top_k=top_k, stride=stride,
                          max_answer_tokens=max_answer_tokens, allow_no_answer=allow_no_answer,
                          no_answer_threshold=no_answer_threshold)
        for question, context in questions:
            request.questions.add(question=question, context=context)
        answer = await self._one(ANSWER_QUESTION, request, call)
        return [Answers(tuple(Answer(one.text, one.score, one.start, one.end) for one in each.answers))
                for each in answer.results]

    async def embed(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate], normalize: bool,
                    per_token: bool, call: Call) -> list[Embedding]:
        request = message("EmbedRequest", model=model, inputs=input_messages(inputs),
                          truncate=truncate_message(truncate), normalize=normalize, per_token=per_token)
        answer = await self._one(EMBED, request, call)
        values = [tuple(each.values) for each in answer.embeddings]
        if not per_token:
            return [Embedding(values=each) for each in values]
        rest = iter(values)
        return [Embedding(tokens=tuple(next(rest) for _ in range(count))) for count in answer.tokens]

    async def list_states(self, call: Call) -> list[StoredState]:
        answer = await self._one(LIST_STATES, message("ListStatesRequest"), call)
        return [StoredState(each.handle, each.bytes, each.expires_at or None) for each in answer.states]

    async def get_state(self, handle: str, call: Call) -> bytes:
        async with closing(self._call(GET_STATE, [message("GetStateRequest", handle=handle)], call)) as answers:
            return b"".join([answer.data async for answer in answers])

    async def put_state(self, data: bytes, handle: str, state_ttl: Optional[int], call: Call) -> State:
        pieces = [message("PutStateRequest", data=data[at:at + CHUNK]) for at in range(0, max(len(data), 1), CHUNK)]
        pieces[0].MergeFrom(message("PutStateRequest", handle=handle, state_ttl=state_ttl))
        async with closing(self._call(PUT_STATE, pieces, call)) as answers:
            return state_of(await first(answers))

    async def delete_state(self, handle: str, call: Call) -> None:
        await self._one(DELETE_STATE, message("DeleteStateRequest", handle=handle), call)

    async def fork_state(self, handle: str, n: int, call: Call) -> list[str]:
        return list((await self._one(FORK_STATE, message("ForkStateRequest", handle=handle, n=n), call)).handles)

    async def _one(self, method: Method, request: Any, call: Call) -> Any:
        async with closing(self._call(method, [request], call)) as answers:
            return await first(answers)

    async def _call(self, method: Method, messages: Sequence[Any], call: Call) -> AsyncGenerator[Any, None]:
        metadata = [*self._metadata, ("x-request-id", call.id)]
        async with closing(self._grpc.call(method, messages, metadata)) as answers:
            with translated(call):
                async for answer in answers:
                    call.answered = True
                    yield answer


@contextlib.contextmanager
def translated(call: Call) -> Iterator[None]:
    """What a status means."""
    try:
        yield
    except grpc.RpcError as error:
        raise failure_of(error, call) from error


def failure_of(error: Any, call: Call) -> Exception:
    """`error`: a grpc.RpcError that is also a call, as all of them are that calls raise."""
    code = error.code().name.lower()
    text = error.details() or code
    call.outcome = f"gRPC {error.code().name}"
    if code == "deadline_exceeded":
        return RequestTimeoutError("the server did not answer in time", code, request_id=call.id)
    param = re.match(r"([a-z_]+(?:\[\d+\])?): ", text) if code == "invalid_argument" else None
    again = code in retrying.AGAIN_GRPC and "CERTIFICATE_VERIFY_FAILED" not in text
    failure = kind_of(code)(text, code, param[1] if param else None, request_id=call.id)
    if not again:
        return failure
    trailing = {name: value for name, value in error.trailing_metadata() or ()}
    return Again(call.outcome, failure, retrying.seconds_of(trailing.get("retry-after")))


def prompt_field(prompt: Prompt) -> dict[str, Any]:
    return {"text": prompt} if isinstance(prompt, str) else {"token_ids": message("TokenIds", ids=prompt)}


def generate_message(request: GenerateRequest) -> Any:
    fields = dict(request)
    if "prompt" in fields:
        fields.update(prompt_field(cast(Prompt, fields.pop("prompt"))))
    if isinstance(fields.get("state"), str):
        fields["state"] = str(fields["state"]).encode()
    if "return_state" in fields:
        fields["return_state"] = "RETURN_STATE_" + str(fields["return_state"]).upper()
    if "state_dtype" in fields:
        fields["state_dtype"] = "STATE_DTYPE_" + str(fields["state_dtype"]).upper()
    return message("GenerateRequest", **fields)


def piece_of(answer: Any) -> Piece:
    prompt = [scores_of(each) for each in answer.prompt_scores]
    if prompt:
        prompt[0] = TokenScores(None)
    return Piece(answer.text, tuple(answer.token_ids), tuple(scores_of(each) for each in answer.scores), tuple(prompt),
                 FINISH_REASONS[answer.finish_reason], usage_of(answer.usage) if answer.HasField("usage") else None,
                 state_of(answer.state) if answer.HasField("state") else None)


def scores_of(scores: Any) -> TokenScores:
    return TokenScores(scores.log_probability, tuple(LikelyToken(each.log_probability, token=each.token)
                                                     for each in scores.top))


def usage_of(usage: Any) -> Usage:
    return Usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens)


def state_of(state: Any) -> State:
    return State(state.handle or None, state.position, state.bytes, state.exact, state.expires_at or None,
                 state.data or None)


def truncate_message(truncate: Optional[Truncate]) -> Any:
    if truncate is None:
        return None
    return message("Truncate", enabled=True, direction="TRUNCATION_DIRECTION_" + truncate.upper())


def input_messages(inputs: Sequence[Input]) -> list[Any]:
    return [message("EncodingInput", **input_field(given)) for given in inputs]


def input_field(given: Input) -> dict[str, Any]:
    if isinstance(given, str):
        return {"text": given}
    if len(given) == 2 and isinstance(given[0], str):
        return {"pair": message("EncodingInput.Pair", first=given[0], second=given[1])}
    return {"tokens": message("EncodingInput.Tokens", ids=given)}
