"""Calls over HTTP: bodies of requests, answers and errors."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import math
import operator
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Optional, Union, cast

import httpx

from . import retrying
from .errors import HippodromeError, InvalidRequestError, RequestTimeoutError, UnavailableError, kind_of
from .plumbing import Http, HttpReply, closing
from .requests import Aggregation, GenerateRequest, Input, Prompt, Truncate
from .results import (Answer, Answers, Candidate, Classification, Embedding, Entity, FilledMasks, LabelScore,
                      LikelyToken, Model, Piece, Score, State, StoredState, Tags, TokenScores, Usage)
from .retrying import Again, Call

# Fields that HTTP calls otherwise.
RENAMED = {"log_probabilities": "logprobs", "score_prompt": "echo"}
_NAMES = {name: field for field, name in RENAMED.items()}


class HttpEndpoint:
    """One server. `seconds`: that an answer may take."""

    def __init__(self, http: Http, seconds: float, headers: Mapping[str, str]) -> None:
        self._http, self._seconds, self._headers = http, seconds, headers
        self.rests_until = 0.0  # of time.monotonic(): Retry-After

    async def close(self) -> None:
        await self._http.close()

    async def generate(self, request: GenerateRequest, stream: bool, call: Call) -> AsyncGenerator[Piece, None]:
        body = completion_body(request, stream)
        echoed = bool(body.get("echo"))
        if not stream:
            answer = await self._json("POST", "/v1/completions", body, call)
            yield piece_of(answer, request, echoed, usage_of(answer["usage"]))
            return
        async with self._open("POST", "/v1/completions", write(body), call) as reply, closing(
                events(reply.chunks, call.begin + self._seconds)) as answers:
            last: Any = None  # usage comes in an event of its own, behind it
            with translated(call):
                async for event in answers:
                    if "error" in event:
                        raise failure_of_event(event["error"], call)
                    if not event["choices"]:
                        yield piece_of(last, request, echoed, usage_of(event["usage"]))
                        continue
                    last = event
                    if event["choices"][0]["finish_reason"] is None:
                        yield piece_of(event, request, echoed)
                        echoed = False

    async def score(self, model: Optional[str], context: Prompt, continuations: Sequence[Prompt], per_token: bool,
                    call: Call) -> list[Score]:
        """Completions of no token, whose prompts are scored. A decoder's name is needed, lest another model's tokenizer
        splits the texts."""
        model = model or await self.first_decoder(call)
        prompts = await self._all_ids(model, [context, *continuations], call)
        for at, prompt in enumerate(prompts):
            if not prompt:
                raise InvalidRequestError("expected one token or more", "invalid_argument",
                                          f"continuations[{at - 1}]" if at > 0 else "context")
        body = {"model": model, "prompt": [prompts[0] + rest for rest in prompts[1:]], "max_tokens": 0, "echo": True,
                "logprobs": 1}
        answer = await self._json("POST", "/v1/completions", body, call)
        choices = sorted(answer["choices"], key=lambda choice: cast(int, choice["index"]))
        return [score_of(choice["logprobs"], ids, per_token) for choice, ids in zip(choices, prompts[1:])]

    async def _all_ids(self, model: str, prompts: Sequence[Prompt], call: Call) -> list[list[int]]:
        texts = [prompt for prompt in prompts if isinstance(prompt, str)]
        found: Iterator[Any] = iter(())
        if texts:
            found = iter(await self._json("POST", "/tokenize", {"model": model, "inputs": texts}, call))
        return [[token["id"] for token in next(found)] if isinstance(prompt, str) else list(prompt)
                for prompt in prompts]

    async def first_decoder(self, call: Call) -> str:
        return first_decoder(await self.models(call))

    async def models(self, call: Call) -> list[Model]:
        answer = await self._json("GET", "/v1/models", None, call)
        return [Model(each["id"], each["architecture"], each["created"], each["max_model_len"] or 0,
                      each.get("head", ""), each.get("attention_window", 0)) for each in answer["data"]]

    async def tokenize(self, model: Optional[str], text: str, add_special_tokens: bool, call: Call) -> list[int]:
        body = {"model": model, "prompt": text, "add_special_tokens": add_special_tokens}
        answer = await self._json("POST", "/tokenize", body, call)
        return [int(token) for token in answer["tokens"]]

    async def detokenize(self, model: Optional[str], token_ids: Sequence[int], call: Call) -> str:
        answer = await self._json("POST", "/detokenize", {"model": model, "tokens": list(token_ids)}, call)
        return str(answer["prompt"])

    async def classify(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate],
                       raw_scores: bool, call: Call) -> list[Classification]:
        body = {"model": model, "inputs": [text_or_pair(each) for each in inputs], "raw_scores": raw_scores,
                **truncation(truncate)}
        answer = await self._json("POST", "/predict", body, call)
        return [Classification(tuple(LabelScore(**score) for score in scores)) for scores in answer]

    async def tag_tokens(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate],
                         aggregation: Aggregation, call: Call) -> list[Tags]:
        body = {"model": model, "inputs": texts_alone(inputs), "aggregation_strategy": aggregation,
                **truncation(truncate)}
        answer = await self._json("POST", "/token_classification", body, call)
        return [Tags(tuple(entity_of(entity) for entity in entities)) for entities in answer]

    async def fill_mask(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate],
                        top_k: Optional[int], targets: Sequence[str], call: Call) -> list[FilledMasks]:
        body = {"model": model, "inputs": texts_alone(inputs), "top_k": top_k, "targets": list(targets) or None,
                **truncation(truncate)}
        answer = await self._json("POST", "/fill_mask", body, call)
        return [masks_of(each) for each in (answer if len(inputs) > 1 else [answer])]

    async def answer_question(self, model: Optional[str], questions: Sequence[tuple[str, str]], top_k: Optional[int],
                              stride: Optional[int], max_answer_tokens: Optional[int], allow_no_answer: bool,
                              no_answer_threshold: Optional[float], call: Call) -> list[Answers]:
        if no_answer_threshold is not None:
            raise ValueError("no_answer_threshold: over gRPC alone")
        body = {"model": model, "inputs": [{"question": question, "context": text} for question, text in questions],
                "top_k": top_k, "doc_stride": stride, "max_answer_len": max_answer_tokens,
                "handle_impossible_answer": allow_no_answer}
        answer = await self._json("POST", "/question_answering", body, call)
        return [Answers(tuple(Answer(one["answer"], one["score"], one["start"], one["end"])
                              for one in (each if isinstance(each, list) else [each])))
                for each in (answer if len(questions) > 1 else [answer])]

    async def embed(self, model: Optional[str], inputs: Sequence[Input], truncate: Optional[Truncate], normalize: bool,
                    per_token: bool, call: Call) -> list[Embedding]:
        body = {"model": model, "inputs": [text_or_ids(each) for each in inputs], **truncation(truncate)}
        if not per_token:
            answer = await self._json("POST", "/embed", {**body, "normalize": normalize}, call)
            return [Embedding(values=tuple(values)) for values in answer]
        answer = await self._json("POST", "/embed_all", body, call)
        # This path knows no `normalize`.
        return [Embedding(tokens=tuple(unit(values) if normalize else tuple(values) for values in tokens))
                for tokens in answer]

    async def list_states(self, call: Call) -> list[StoredState]:
        answer = await self._json("GET", "/v1/states", None, call)
        return [StoredState(**each) for each in answer["data"]]

    async def get_state(self, handle: str, call: Call) -> bytes:
        return await self._whole("GET", state_path(handle), None, call)

    async def put_state(self, data: bytes, handle: str, state_ttl: Optional[int], call: Call) -> State:
        path = state_path(handle)
        if state_ttl is not None:
            path += f"?state_ttl={state_ttl:d}"
        return state_of(json.loads(await self._whole("PUT", path, data, call, "application/octet-stream")))

    async def delete_state(self, handle: str, call: Call) -> None:
        await self._json("DELETE", state_path(handle), None, call)

    async def fork_state(self, handle: str, n: int, call: Call) -> list[str]:
        answer = await self._json("POST", state_path(handle) + "/fork", {"n": n}, call)
        return [str(forked) for forked in answer["handles"]]

    async def _json(self, method: str, path: str, body: Any, call: Call) -> Any:
        data = await self._whole(method, path, None if body is None else write(body), call)
        with translated(call):
            return json.loads(data)

    async def _whole(self, method: str, path: str, body: Optional[bytes], call: Call,
                     content_type: str = "application/json") -> bytes:
        async with self._open(method, path, body, call, content_type) as reply:
            with translated(call):
                return b"".join([chunk async for chunk in reply.chunks])

    @contextlib.asynccontextmanager
    async def _open(self, method: str, path: str, body: Optional[bytes], call: Call,
                    content_type: str = "application/json") -> AsyncGenerator[HttpReply, None]:
        headers = {**self._headers, "x-request-id": call.id}
        if body is not None:
            headers["content-type"] = content_type
        with translated(call):
            reply = await self._http.open(method, path, headers, body)
        call.answered = True
        try:
            if reply.status != 200:
                with translated(call):
                    raise failure_of(reply, b"".join([chunk async for chunk in reply.chunks]), call)
            yield reply
        finally:
            await reply.close()


@contextlib.contextmanager
def translated(call: Call) -> Iterator[None]:
    """What a broken connection means. A body that ends early may be no JSON; asynchronously, some errors of TLS come as
    they are."""
    try:
        yield
    except HippodromeError:
        raise
    except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
        call.outcome = f"HTTP {type(error).__name__}"
        raise RequestTimeoutError("the server did not answer in time", "deadline_exceeded",
                                  request_id=call.id) from error
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol) as error:
        raise InvalidRequestError(f"this cannot be sent: {error}", "invalid_argument", request_id=call.id) from error
    except (httpx.TransportError, OSError, json.JSONDecodeError) as error:
        if untrusted(error):
            raise UnavailableError(f"the server's certificate is not trusted: {error}", "unavailable",
                                   request_id=call.id) from error
        call.outcome = f"HTTP broken: {type(error).__name__}"
        raise Again(call.outcome, UnavailableError(f"the connection broke: {error}", "unavailable",
                                                   request_id=call.id)) from error


def untrusted(error: Optional[BaseException]) -> bool:
    """It would come again."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def failure_of(reply: HttpReply, body: bytes, call: Call) -> Exception:
    """Of an answer that is none."""
    call.outcome = f"HTTP {reply.status}"
    try:
        error = json.loads(body)["error"]
        error = error if isinstance(error, dict) else {"message": str(error)}
    except (ValueError, KeyError, TypeError):
        # Of a balancer.
        error = {"message": f"HTTP {reply.status}: {body[:200].decode(errors='replace')}"}
    failure = error_of(error, kind_of("", reply.status), reply.status, call)
    if reply.status not in retrying.AGAIN_HTTP:
        return failure
    return Again(call.outcome, failure, retrying.seconds_of(reply.headers.get("retry-after")))


def failure_of_event(error: Mapping[str, Any], call: Call) -> Exception:
    """Of a stream that had begun."""
    call.outcome = f"HTTP stream: {error['code']}"
    if error["type"] not in retrying.AGAIN_HTTP_EVENTS:
        return error_of(error, kind_of(error["code"]), None, call)
    return Again(call.outcome, error_of(error, UnavailableError, None, call), retrying.AGAIN_EVENT_SECONDS)


def error_of(error: Mapping[str, Any], kind: type[HippodromeError], status: Optional[int],
             call: Call) -> HippodromeError:
    param = error.get("param")
    return kind(error.get("message", ""), error.get("code", "unknown"), _NAMES.get(param, param) if param else None,
                status, call.id)


async def events(chunks: AsyncIterator[bytes], end: float) -> AsyncGenerator[Any, None]:
    """Those of a stream, which must end as it should, and until the time `end`. Lines end with a line feed alone: texts
    may have any other character that ends lines elsewhere."""
    rest, done = b"", False
    async for chunk in chunks:  # to the end of the body: then the connection serves the next call
        if time.monotonic() > end:
            raise httpx.ReadTimeout("the stream takes too long")
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line == b"data: [DONE]":
                done = True
            elif line.startswith(b"data: "):
                yield json.loads(line[len(b"data: "):])
    if not done:
        raise httpx.RemoteProtocolError("the stream ended early")


def write(body: Mapping[str, Any]) -> bytes:
    """Without what is None."""
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def completion_body(request: GenerateRequest, stream: bool) -> dict[str, Any]:
    body: dict[str, Any] = {RENAMED.get(name, name): value for name, value in request.items()}
    if isinstance(body.get("state"), bytes):
        body["state"] = base64.b64encode(body["state"]).decode()
    if "logit_bias" in body:
        body["logit_bias"] = {str(token): bias for token, bias in body["logit_bias"].items()}
    for name in ("prompt", "stop", "cache_marks"):
        if name in body and not isinstance(body[name], str):
            body[name] = list(body[name])
    # Only an echo may have no new token. One without log probabilities is of no use otherwise.
    body["echo"] = body.get("max_tokens") == 0 or bool(body.get("echo")) and "logprobs" in body
    if stream:
        body.update(stream=True, stream_options={"include_usage": True})
    return body


def piece_of(answer: Any, request: GenerateRequest, echoed: bool, usage: Optional[Usage] = None) -> Piece:
    """`echoed`: it begins with the prompt."""
    choice = answer["choices"][0]
    scores = choice["logprobs"]
    text, token_ids = choice["text"], tuple(choice["token_ids"])
    scored = scores_of(scores, request.get("log_probabilities", 0)) if scores else ()
    prompt_tokens = len(scored) - len(token_ids) if echoed and scored else 0
    if echoed and not token_ids:
        text = ""
    elif echoed:
        text = text[scores["text_offset"][prompt_tokens]:]
    return Piece(text, token_ids, scored[prompt_tokens:],
                 scored[:prompt_tokens] if request.get("score_prompt") else (), choice["finish_reason"], usage,
                 state_of(answer["state"]) if "state" in answer else None)


def scores_of(scores: Any, top: int) -> tuple[TokenScores, ...]:
    return tuple(
        TokenScores(own, tuple(LikelyToken(value, name=name) for name, value in list((likely or {}).items())[:top]))
        for own, likely in zip(scores["token_logprobs"], scores["top_logprobs"]))


def score_of(scores: Any, ids: list[int], per_token: bool) -> Score:
    """Of a prompt that ends with `ids`. The likeliest token is named first; the token's own name stands there too. The
    sum is added up as the server does it over gRPC: sum() compensates for rounding from Python 3.12 on."""
    begin = len(scores["tokens"]) - len(ids)
    values = scores["token_logprobs"][begin:]
    greedy = all(next(iter(likely)) == name
                 for name, likely in zip(scores["tokens"][begin:], scores["top_logprobs"][begin:]))
    return Score(functools.reduce(operator.add, values, 0.0), len(ids), greedy, tuple(ids) if per_token else (),
                 tuple(values) if per_token else ())


def first_decoder(models: Sequence[Model]) -> str:
    """Which answers requests that name no model."""
    for model in models:
        if not model.head:
            return model.name
    raise InvalidRequestError("no model of this server is a decoder", "failed_precondition", "model")


def usage_of(usage: Any) -> Usage:
    return Usage(usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"]["cached_tokens"])


def state_of(state: Any) -> State:
    data = base64.b64decode(state["data"]) if "data" in state else None
    return State(state["handle"], state["position"], state["bytes"], state["exact"], state["expires_at"], data)


def state_path(handle: str) -> str:
    """What is no handle is for the server to say, but no part of a path."""
    if not handle.isalnum():
        raise ValueError("handle: expected 32 hexadecimal digits")
    return "/v1/states/" + handle


def truncation(truncate: Optional[Truncate]) -> dict[str, Any]:
    return {} if truncate is None else {"truncate": True, "truncation_direction": truncate}


def text_or_pair(given: Input) -> list[str]:
    if isinstance(given, str):
        return [given]
    if len(given) == 2 and all(isinstance(text, str) for text in given):
        return [str(text) for text in given]
    raise ValueError("inputs: expected texts or pairs of texts; token ids are taken over gRPC")


def texts_alone(inputs: Sequence[Input]) -> list[str]:
    texts = [text for text in inputs if isinstance(text, str)]
    if len(texts) < len(inputs):
        raise ValueError("inputs: expected texts; others are taken over gRPC")
    return texts


def text_or_ids(given: Input) -> Union[str, list[int]]:
    if isinstance(given, str):
        return given
    if any(isinstance(token, str) for token in given):
        raise ValueError("inputs: expected texts or token ids; pairs are taken over gRPC")
    return [int(token) for token in given]


def entity_of(entity: Any) -> Entity:
    return Entity(entity.get("entity_group") or entity["entity"], entity["score"], entity["word"], entity["start"],
                  entity["end"], entity.get("index", 0))


def masks_of(result: Any) -> FilledMasks:
    """One mask is written without the list around it."""
    masks = result if isinstance(result[0], list) else [result]
    return FilledMasks(tuple(tuple(Candidate(each["score"], each["token"], each["token_str"], each["sequence"])
                                   for each in mask) for mask in masks))


def unit(values: Sequence[float]) -> tuple[float, ...]:
    length = math.sqrt(sum(value * value for value in values))
    return tuple(value / length for value in values) if length > 0 else tuple(values)
