"""Connections, synchronous and not: all that the two clients do not have in common."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import grpc
import grpc.aio
import httpx

from .plumbing import HttpReply, over
from .protocol import Method

CONNECT_SECONDS = 10.0
# What is sent again, and when, is for retrying.py alone. Answers may be large: the server bounds them.
CHANNEL_OPTIONS = (("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1),
                   ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000),
                   ("grpc.use_local_subchannel_pool", 1))


class Security(NamedTuple):
    """`ca`: a file of authorities; `certificate`: files of the client's own certificate and its key."""

    ca: Optional[str]
    certificate: Optional[tuple[str, str]]

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate is not None:
            context.load_cert_chain(*self.certificate)
        return context

    def credentials(self) -> grpc.ChannelCredentials:
        certificate, key = self.certificate or (None, None)
        return grpc.ssl_channel_credentials(_read(self.ca), _read(key), _read(certificate))


def _read(path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def _http_options(url: str, security: Security, seconds: float) -> dict[str, Any]:
    verify: Union[bool, ssl.SSLContext] = security.context() if url.startswith("https:") else True
    return {"base_url": url, "verify": verify,
            "timeout": httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=32)}


async def sleep(seconds: float) -> None:
    time.sleep(seconds)


async_sleep = asyncio.sleep


class SyncHttp:
    def __init__(self, url: str, security: Security, seconds: float) -> None:
        self._client = httpx.Client(**_http_options(url, security, seconds))

    async def open(self, method: str, path: str, headers: Mapping[str, str], body: Optional[bytes]) -> HttpReply:
        request = self._client.build_request(method, path, headers=dict(headers), content=body)
        response = self._client.send(request, stream=True)

        async def close() -> None:
            response.close()

        return HttpReply(response.status_code, response.headers, over(response.iter_bytes()), close)

    async def close(self) -> None:
        self._client.close()


class AsyncHttp:
    def __init__(self, url: str, security: Security, seconds: float) -> None:
        self._client = httpx.AsyncClient(**_http_options(url, security, seconds))

    async def open(self, method: str, path: str, headers: Mapping[str, str], body: Optional[bytes]) -> HttpReply:
        request = self._client.build_request(method, path, headers=dict(headers), content=body)
        response = await self._client.send(request, stream=True)
        return HttpReply(response.status_code, response.headers, response.aiter_bytes(), response.aclose)

    async def close(self) -> None:
        await self._client.aclose()


class SyncGrpc:
    def __init__(self, address: str, security: Optional[Security], seconds: float) -> None:
        self._seconds = seconds
        self._channel = (grpc.insecure_channel(address, CHANNEL_OPTIONS) if security is None else
                         grpc.secure_channel(address, security.credentials(), CHANNEL_OPTIONS))

    async def call(self, method: Method, messages: Sequence[Any], metadata: Sequence[tuple[str, str]]) -> (
            AsyncGenerator[Any, None]):
        answers: Any
        if len(messages) == 1:  # a stream of requests costs a thread
            answers = self._channel.unary_stream(method.path, method.write, method.parse)(
                messages[0], timeout=self._seconds, metadata=tuple(metadata))
        else:
            answers = self._channel.stream_stream(method.path, method.write, method.parse)(
                iter(messages), timeout=self._seconds, metadata=tuple(metadata))
        try:
            for answer in answers:
                yield answer
        finally:
            answers.cancel()

    async def close(self) -> None:
        self._channel.close()


class AsyncGrpc:
    def __init__(self, address: str, security: Optional[Security], seconds: float) -> None:
        self._address, self._security, self._seconds = address, security, seconds
        self._channel: Optional[grpc.aio.Channel] = None  # belongs to the loop of the first call

    def _open(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = (
                grpc.aio.insecure_channel(self._address, CHANNEL_OPTIONS) if self._security is None else
                grpc.aio.secure_channel(self._address, self._security.credentials(), CHANNEL_OPTIONS))
        return self._channel

    async def call(self, method: Method, messages: Sequence[Any], metadata: Sequence[tuple[str, str]]) -> (
            AsyncGenerator[Any, None]):
        answers: Any
        if len(messages) == 1:
            answers = self._open().unary_stream(method.path, method.write, method.parse)(
                messages[0], timeout=self._seconds, metadata=tuple(metadata))
        else:
            answers = self._open().stream_stream(method.path, method.write, method.parse)(
                iter(messages), timeout=self._seconds, metadata=tuple(metadata))
        try:
            async for answer in answers:
                yield answer
        finally:
            answers.cancel()

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
