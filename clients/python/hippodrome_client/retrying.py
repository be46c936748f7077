"""What may be sent again, when, and what comes of a stream that broke off: docs/replicas.md, "What clients may send
again"."""

from __future__ import annotations

import dataclasses
import random
import time
import uuid
from typing import Callable, Optional

from .errors import HippodromeError, OtherAnswerError, RetryError
from .results import Attempt, Piece

AGAIN_HTTP = (429, 502, 503, 504)
AGAIN_HTTP_EVENTS = ("overloaded_error", "rate_limit_error")  # types of errors in a stream
AGAIN_EVENT_SECONDS = 1.0  # an event has no Retry-After
# The last three are what libraries make of a call that a balancer broke off.
AGAIN_GRPC = ("unavailable", "resource_exhausted", "internal", "unknown", "cancelled")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds


class Again(Exception):
    """The request may be sent again, to this server `after` seconds at the earliest. `error`: what it is where there is
    no time left; `outcome`: as in Attempt."""

    def __init__(self, outcome: str, error: HippodromeError, after: float = 0.0) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.error = error
        self.after = after


class Call:
    """One attempt. Its endpoint says what comes of it."""

    def __init__(self, number: int) -> None:
        self.number = number  # 1: the first one
        self.id = str(uuid.uuid4())
        self.begin = time.monotonic()
        self.outcome = "left"
        self.answered = False

    def ended(self) -> Attempt:
        return Attempt(self.id, self.begin, time.monotonic(), self.outcome, self.answered)


class Patience:
    """For `seconds` without anything new a request is sent again."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic,
                 draw: Callable[[float, float], float] = random.uniform) -> None:
        self._seconds, self._clock, self._draw = seconds, clock, draw
        self.progressed()

    def progressed(self) -> None:
        self._end = self._clock() + self._seconds
        self._pause = FIRST_PAUSE

    def pause(self, again: Again, rest: float) -> float:
        """Seconds to wait after a failure, `rest` at least; raises RetryError where that would be too long."""
        pause = max(rest, self._draw(0, self._pause))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if self._clock() + pause <= self._end:
            return pause
        error = again.error
        raise RetryError(f"given up after {self._seconds:g} s: {error.message}", error.code, error.param, error.status,
                         error.request_id) from error


class Had:
    """What the caller has of a text, from where the request that runs begins. The same request has the same answer: of
    one that is sent again, this is the beginning."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._ids: list[int] = []
        self._scored_prompt = False
        self.begin()

    def begin(self) -> None:
        """An attempt begins."""
        self._before, self._ids_before = "".join(self._text), len(self._ids)
        self._text = [self._before]
        self._text_at = self._ids_at = 0

    def go_on(self) -> None:
        """The next request goes on from the end of this attempt's answer."""
        self._text, self._ids = ["".join(self._text)[self._text_at:]], self._ids[self._ids_at:]

    def new(self, piece: Piece) -> Piece:
        """What the caller does not have of it."""
        known = self._before[self._text_at:self._text_at + len(piece.text)]
        known_ids = self._ids[self._ids_at:min(self._ids_before, self._ids_at + len(piece.token_ids))]
        self._text_at += len(piece.text)
        self._ids_at += len(piece.token_ids)
        if piece.text[:len(known)] != known or list(piece.token_ids[:len(known_ids)]) != known_ids:
            raise OtherAnswerError("the stream broke off, and what was had of it is not how the next one begins")
        ended = piece.finish_reason not in (None, "migrated")
        if ended and (self._text_at < len(self._before) or self._ids_at < self._ids_before):
            raise OtherAnswerError("the stream broke off, and the next one is shorter than what was had of it")
        fresh = dataclasses.replace(
            piece, text=piece.text[len(known):], token_ids=piece.token_ids[len(known_ids):],
            scores=piece.scores[len(known_ids):], prompt_scores=() if self._scored_prompt else piece.prompt_scores)
        self._text.append(fresh.text)
        self._ids += fresh.token_ids
        self._scored_prompt |= bool(piece.prompt_scores)
        return fresh


def seconds_of(retry_after: Optional[str]) -> float:
    """Of Retry-After. Dates, which no server of ours sends, are no wait."""
    try:
        return max(0.0, float(retry_after or 0))
    except ValueError:
        return 0.0
