"""What calls ask for, under the names of the protocol."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Union, cast

from .results import State

Prompt = Union[str, Sequence[int]]  # a text, or token ids
# Of encoders: a text, a pair of texts, or token ids with [CLS] and [SEP].
Input = Union[str, tuple[str, str], Sequence[int]]
Inputs = Union[str, Sequence[Input]]  # several, or one text
Truncate = Literal["left", "right"]  # the side on which tokens go
Aggregation = Literal["none", "simple", "first", "average", "max"]

DEFAULT_MAX_TOKENS = 16


class GenerateOptions(TypedDict, total=False):
    """Fields of GenerateRequest in proto/hippodrome/v1/generation.proto, which says their ranges."""

    model: str
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    typical_p: float
    seed: int
    stop: Union[str, Sequence[str]]
    ignore_eos: bool
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]
    log_probabilities: int
    score_prompt: bool
    state: Union[str, bytes, State]  # a handle, the file, or the state of an answer
    position: int
    return_state: Literal["none", "handle", "inline"]
    state_dtype: Literal["f32", "bf16"]
    state_ttl: int
    cache_prompt: bool
    cache_salt: str
    cache_marks: Sequence[int]


class GenerateRequest(GenerateOptions, total=False):
    """`state` is a handle or a file."""

    prompt: Prompt


def place_of(state: Union[str, bytes, State]) -> Union[str, bytes]:
    """The handle of a state, or its file."""
    if not isinstance(state, State):
        return state
    place = state.data or state.handle
    if place is None:
        raise ValueError("the state was not kept: it has neither a handle nor data")
    return place


def handle_of(state: Union[str, State]) -> str:
    handle = state.handle if isinstance(state, State) else state
    if handle is None:
        raise ValueError("the state is not under a handle")
    return handle


def generate_request(prompt: Union[Prompt, None], options: Mapping[str, Any]) -> GenerateRequest:
    """A request that may be sent again, for it has a seed: of its own, or that of the state."""
    unknown = options.keys() - GenerateOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"generate() got an unexpected keyword argument '{min(unknown)}'")
    request = {name: value for name, value in options.items() if value is not None}
    if prompt is not None and len(prompt) > 0:
        request["prompt"] = prompt
    if isinstance(request.get("stop"), str):
        request["stop"] = [request["stop"]]
    if "state" in request:
        request["state"] = place_of(request["state"])
    elif "seed" not in request:
        request["seed"] = random.getrandbits(63)
    return cast(GenerateRequest, request)


def input_list(inputs: Inputs) -> Sequence[Input]:
    return [inputs] if isinstance(inputs, str) else inputs
