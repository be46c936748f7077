"""What calls answer, under the names of the protocol."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from typing import Any, Literal, Optional

# Python 3.9 knows no slots of data classes.
SLOTS: dict[str, Any] = {"slots": True} if sys.version_info >= (3, 10) else {}

FinishReason = Literal["stop", "length", "migrated"]


@dataclasses.dataclass(frozen=True, **SLOTS)
class LikelyToken:
    """One that could have stood in a place. gRPC says its id, HTTP its name, which for most tokens is their text."""

    log_probability: float
    token: Optional[int] = None
    name: Optional[str] = None


@dataclasses.dataclass(frozen=True, **SLOTS)
class TokenScores:
    """Of one token of a text. The first one of a prompt has no log probability."""

    log_probability: Optional[float]
    top: tuple[LikelyToken, ...] = ()  # the likeliest tokens in its place, best first


@dataclasses.dataclass(frozen=True, **SLOTS)
class Usage:
    prompt_tokens: int  # those of the state that it went on from included
    completion_tokens: int
    cached_tokens: int  # of prompt_tokens, those that were not taken in again


@dataclasses.dataclass(frozen=True, **SLOTS)
class State:
    """What a sequence has come to. Without `handle` and `data` it could not be kept."""

    handle: Optional[str]
    position: int  # tokens that are in it
    bytes: int  # of the file
    exact: bool
    expires_at: Optional[int] = None  # Unix seconds
    data: Optional[builtins.bytes] = None  # the file, where it was asked for inline


@dataclasses.dataclass(frozen=True, **SLOTS)
class StoredState:
    handle: str
    bytes: int
    expires_at: Optional[int]  # Unix seconds


@dataclasses.dataclass(frozen=True, **SLOTS)
class Piece:
    """A part of a text. The last one has `finish_reason`, `usage`, and `state` where there is one."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    scores: tuple[TokenScores, ...] = ()  # with log_probabilities: one for each of token_ids
    prompt_scores: tuple[TokenScores, ...] = ()  # with score_prompt: of the first piece
    finish_reason: Optional[FinishReason] = None
    usage: Optional[Usage] = None
    state: Optional[State] = None


@dataclasses.dataclass(frozen=True, **SLOTS)
class Generation:
    """A text as a whole."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    usage: Usage
    scores: tuple[TokenScores, ...] = ()
    prompt_scores: tuple[TokenScores, ...] = ()
    state: Optional[State] = None


@dataclasses.dataclass(frozen=True, **SLOTS)
class Score:
    """Of one continuation."""

    log_probability: float  # the sum over its tokens
    tokens: int
    greedy: bool  # each of its tokens is the likeliest in its place
    token_ids: tuple[int, ...] = ()  # with per_token
    token_log_probabilities: tuple[float, ...] = ()  # with per_token


@dataclasses.dataclass(frozen=True, **SLOTS)
class Model:
    """HTTP does not tell what is None."""

    name: str
    architecture: str
    created: int  # when it was loaded, Unix seconds
    max_positions: int  # 0: no limit but memory
    head: str = ""  # of encoders
    attention_window: int = 0
    weights: Optional[str] = None
    parameters: Optional[int] = None
    vocab_size: Optional[int] = None
    has_tokenizer: Optional[bool] = None
    max_sequences: Optional[int] = None
    labels: Optional[tuple[str, ...]] = None
    embedding_size: Optional[int] = None
    pad_to: Optional[int] = None
    max_batch_tokens: Optional[int] = None


@dataclasses.dataclass(frozen=True, **SLOTS)
class LabelScore:
    label: str
    score: float


@dataclasses.dataclass(frozen=True, **SLOTS)
class Classification:
    scores: tuple[LabelScore, ...]  # best first


@dataclasses.dataclass(frozen=True, **SLOTS)
class Entity:
    label: str
    score: float
    word: str
    start: int  # code points of the input
    end: int
    index: int = 0  # of the token in the input, with the aggregation "none"


@dataclasses.dataclass(frozen=True, **SLOTS)
class Tags:
    entities: tuple[Entity, ...]  # in the order of the text


@dataclasses.dataclass(frozen=True, **SLOTS)
class Candidate:
    score: float
    token_id: int
    token: str
    sequence: str  # the input with this token in the place


@dataclasses.dataclass(frozen=True, **SLOTS)
class FilledMasks:
    masks: tuple[tuple[Candidate, ...], ...]  # for each [MASK], in the order of the text, the best first


@dataclasses.dataclass(frozen=True, **SLOTS)
class Answer:
    text: str  # a part of the context; empty for no answer
    score: float
    start: int  # code points of the context
    end: int


@dataclasses.dataclass(frozen=True, **SLOTS)
class Answers:
    answers: tuple[Answer, ...]  # best first


@dataclasses.dataclass(frozen=True, **SLOTS)
class Embedding:
    """Of one input: of the whole, or with per_token of each of its tokens."""

    values: tuple[float, ...] = ()
    tokens: tuple[tuple[float, ...], ...] = ()


@dataclasses.dataclass(frozen=True, **SLOTS)
class Attempt:
    """A request that was sent once. `outcome`: "ok", "migrated", "left" where the caller did not wait for its end, or
    what went wrong; `answered`: something of an answer had come. Times are those of time.monotonic()."""

    id: str  # x-request-id
    begin: float
    end: float
    outcome: str
    answered: bool
