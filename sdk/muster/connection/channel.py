"""The gRPC channel to one server: how it is opened, replaced, and why it cannot connect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import grpc
import grpc.aio

from muster.connection.authorization import Authorization
from muster.connection.authorized_channel import AuthorizedChannel
from muster.connection.tls_files import TlsFiles
from muster.connection.unary import ask, describe_trouble
from muster.credentials import Tls
from muster.errors import MusterError
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
        tls: Tls | None,
        authorization: Authorization | None,
        options: Sequence[tuple[str, int | str]],
    ) -> None:
        """Raises ``MusterError`` for TLS files that cannot be read."""
        self.target = target
        self.trouble = "it did not answer"
        self._files = None if tls is None else TlsFiles(tls)
        self._authorization = authorization
        self._options = (*_OPTIONS, *options)
        if tls is not None and tls.server_name:
            self._options = (*self._options, ("grpc.ssl_target_name_override", tls.server_name))
        self._channel = self._open()
        self._make_stubs()

    async def replace(self) -> None:
        """Open a new connection. One whose other end vanished silently still looks healthy.

        So does one with the former TLS files.
        """
        try:
            channel = self._open()
        except MusterError as error:
            # Files are replaced one after the other: the next attempt reads them again.
            self.trouble = str(error)
            return
        old, self._channel = self._channel, channel
        self._make_stubs()
        await old.close(None)

    @property
    def has_old_files(self) -> bool:
        """Whether the TLS files have changed since the channel was opened."""
        return self._files is not None and self._files.has_changed()

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close(None)
        # grpc.aio reports cancelled calls to the loop a moment later. If the loop has ended by
        # then, the next loop prints tracebacks.
        await asyncio.sleep(_SETTLE_S)

    async def wait_until_ready(self) -> None:
        """Return once connected; until then find out from time to time why it is not.

        TLS files that have changed are read again, also while the connection fails.
        """
        while True:
            if self.has_old_files:
                await self.replace()
            if await self._is_ready():
                return

    async def _is_ready(self) -> bool:
        """Whether it has connected; or else its TLS files have changed."""
        ready = asyncio.ensure_future(self._channel.channel_ready())
        try:
            while not ready.done():
                await asyncio.wait((ready,), timeout=_LOOK_DELAY_S)
                if not ready.done():
                    self.trouble = await self.find_trouble()
                    if self.has_old_files:
                        return False
            await ready
        finally:
            ready.cancel()
        return True

    def _open(self) -> grpc.aio.Channel:
        if self._files is None:
            return grpc.aio.insecure_channel(self.target, options=self._options)
        credentials = self._files.make_credentials()
        return grpc.aio.secure_channel(self.target, credentials, options=self._options)

    def _make_stubs(self) -> None:
        channel: Any = self._channel
        if self._authorization is not None:
            channel = AuthorizedChannel(self._channel, self._authorization)
        self.group: group_pb2_grpc.GroupServiceAsyncStub
        self.group = group_pb2_grpc.GroupServiceStub(channel)
        self.classic: classic_pb2_grpc.ClassicServiceAsyncStub
        self.classic = classic_pb2_grpc.ClassicServiceStub(channel)
        self.admin: admin_pb2_grpc.AdminServiceAsyncStub
        self.admin = admin_pb2_grpc.AdminServiceStub(channel)

    async def find_trouble(self) -> str:
        """Make a cheap call, only to learn why it fails."""
        request = admin_pb2.ListTopicsRequest(page_size=1)
        shown = () if self._authorization is None else self._authorization.present
        method = admin_pb2_grpc.AdminServiceStub(self._channel).ListTopics
        try:
            await ask(method, request, timeout=_LOOK_TIMEOUT_S, metadata=shown)
        except grpc.aio.AioRpcError as error:
            return describe_trouble(error)
        return self.trouble
