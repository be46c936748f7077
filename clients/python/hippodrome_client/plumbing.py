"""What the core is written on. It is written once, as coroutines; with the parts of the synchronous client these never
wait for a loop: they run to their end where they are."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from typing import Any, Callable, Iterable, NamedTuple, Optional, Protocol, TypeVar

from .protocol import Method

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]


class HttpReply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # of whatever case
    chunks: AsyncIterator[bytes]  # of the body
    close: Callable[[], Awaitable[None]]


class Http(Protocol):
    """One server. What goes wrong are the exceptions of httpx."""

    async def open(self, method: str, path: str, headers: Mapping[str, str], body: Optional[bytes]) -> HttpReply: ...

    async def close(self) -> None: ...


class Grpc(Protocol):
    """One server. What goes wrong is a grpc.RpcError."""

    def call(self, method: Method, messages: Sequence[Any], metadata: Sequence[tuple[str, str]]) -> (
            AsyncGenerator[Any, None]): ...

    async def close(self) -> None: ...


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine that does not wait comes to."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise RuntimeError("a part of the asynchronous client was given to the synchronous one")


async def over(items: Iterable[T]) -> AsyncGenerator[T, None]:
    for item in items:
        yield item


async def first(items: AsyncIterator[T]) -> Optional[T]:
    """The next one; None at the end."""
    async for item in items:
        return item
    return None


@contextlib.asynccontextmanager
async def closing(items: AsyncGenerator[T, None]) -> AsyncIterator[AsyncGenerator[T, None]]:
    """contextlib.aclosing, which Python 3.9 lacks: what is left of the items is given up at once."""
    try:
        yield items
    finally:
        await items.aclose()
