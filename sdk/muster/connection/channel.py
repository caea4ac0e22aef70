"""The gRPC channel to one server: how it is opened, replaced, and why it cannot connect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import grpc
import grpc.aio

from muster.connection.unary import ask, describe_trouble
from muster.v1 import admin_pb2, admin_pb2_grpc, classic_pb2_grpc, group_pb2_grpc

_LOOK_DELAY_S: Final = 1.0
_LOOK_TIMEOUT_S: Final = 1.0
_SETTLE_S: Final = 0.01
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    # gRPC retries a call that never left without a limit: if its connection breaks at the wrong
    # moment, the call never returns and uses up all memory. Muster retries by itself.
    ("grpc.enable_retries", 0),
    # Bandwidth probes would double the cost of small messages, here and at the server.
    ("grpc.http2.bdp_probe", 0),
    # Each client has a connection of its own, even if two have the same target.
    ("grpc.use_local_subchannel_pool", 1),
)


class ServerChannel:
    """A channel to ``target`` with its stubs. ``trouble`` says why the last attempt failed."""

    def __init__(
        self,
        target: str,
        credentials: grpc.ChannelCredentials | None,
        options: Sequence[tuple[str, int | str]],
    ) -> None:
        self.target = target
        self.trouble = "it did not answer"
        self._credentials = credentials
        self._options = (*_OPTIONS, *options)
        self._channel = self._open()
        self._make_stubs()

    async def replace(self) -> None:
        """Open a new connection. One whose other end vanished silently still looks healthy."""
        old, self._channel = self._channel, self._open()
        self._make_stubs()
        await old.close(None)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close(None)
        # grpc.aio reports cancelled calls to the loop a moment later. If the loop has ended by
        # then, the next loop prints tracebacks.
        await asyncio.sleep(_SETTLE_S)

    async def wait_until_ready(self) -> None:
        """Return once connected; until then find out from time to time why it is not."""
        ready = asyncio.ensure_future(self._channel.channel_ready())
        try:
            while not ready.done():
                await asyncio.wait((ready,), timeout=_LOOK_DELAY_S)
                if not ready.done():
                    self.trouble = await self.find_trouble()
            await ready
        finally:
            ready.cancel()

    def _open(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.target, options=self._options)
        return grpc.aio.secure_channel(self.target, self._credentials, options=self._options)

    def _make_stubs(self) -> None:
        self.group = group_pb2_grpc.GroupServiceStub(self._channel)
        self.classic = classic_pb2_grpc.ClassicServiceStub(self._channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    async def find_trouble(self) -> str:
        """Make a cheap call, only to learn why it fails."""
        request = admin_pb2.ListTopicsRequest(page_size=1)
        try:
            await ask(self.admin.ListTopics, request, timeout=_LOOK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            return describe_trouble(error)
        return self.trouble
