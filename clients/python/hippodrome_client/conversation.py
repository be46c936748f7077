"""Conversations that go on from saved states: nothing is taken in again as long as the state is there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple, Optional

from .core import Core, whole
from .errors import NotFoundError
from .plumbing import closing
from .requests import Prompt, generate_request
from .results import Piece, State


class Turn(NamedTuple):
    """What was said and answered, and the state behind both, where it could be kept."""

    prompt: Prompt
    text: str
    token_ids: tuple[int, ...]
    state: Optional[State]


class Turns:
    """What both kinds of conversations are. `options`: of each answer; a state among them is what the first one goes on
    from. A state that is gone is made again of what was said."""

    def __init__(self, core: Core, options: Any, turns: tuple[Turn, ...] = ()) -> None:
        self._core = core
        self._options = {"return_state": "handle", **options}
        self.turns = turns
        generate_request(None, self._options)  # refuses what is no option

    @property
    def state(self) -> Optional[State]:
        return self.turns[-1].state if self.turns else None

    def undo(self) -> None:
        if not self.turns:
            raise ValueError("nothing was said yet")
        self.turns = self.turns[:-1]

    def fork(self) -> Turns:
        return Turns(self._core, self._options, self.turns)

    async def say(self, prompt: Prompt, stream: bool) -> AsyncGenerator[Piece, None]:
        """The answer. It counts when its last piece is given."""
        turns, pieces = self.turns, list[Piece]()
        async with closing(self._answer(prompt, stream)) as given:
            async for piece in given:
                pieces.append(piece)
                if piece.finish_reason is not None:
                    answer = whole(pieces)
                    self.turns = (*turns, Turn(prompt, answer.text, answer.token_ids, answer.state))
                yield piece

    async def _answer(self, prompt: Prompt, stream: bool) -> AsyncGenerator[Piece, None]:
        state, begun = self.state, False
        if state is not None and (state.handle or state.data):
            options = {name: value for name, value in self._options.items() if name != "position"}
            try:
                async with closing(self._core.pieces(prompt, {**options, "state": state}, stream)) as given:
                    async for piece in given:
                        begun = True
                        yield piece
                return
            except NotFoundError:
                if begun:
                    raise
        async with closing(self._core.pieces(await self._all(prompt), self._options, stream)) as given:
            async for piece in given:
                yield piece

    async def _all(self, prompt: Prompt) -> Prompt:
        """What was said and answered, and what is new."""
        if not self.turns:
            return prompt
        ids: list[int] = []
        for turn in self.turns:
            ids += await self._core.ids_of(self._options.get("model"), turn.prompt)
            ids += turn.token_ids
        return ids + await self._core.ids_of(self._options.get("model"), prompt)
