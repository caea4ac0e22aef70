"""Reads ``WatchGroup`` on a thread, and keeps the newest group alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cli.errors import CommandError, ExitCode
from cli.server_calls import ServerCalls

if TYPE_CHECKING:
    from cli.admin_client import AdminClient
    from muster.v1 import admin_pb2


class SilentServer(CommandError):
    """Nothing has come for longer than the server lets pass."""

    def __init__(self, server: str, silence_s: float) -> None:
        message = f"{server} did not say anything for {silence_s:g} s"
        super().__init__(message, ExitCode.UNREACHABLE)


def open_group_stream(
    client: AdminClient, group_id: str, now_s: Callable[[], float]
) -> GroupStream:
    """Watch a group."""
    calls = client.calls
    return GroupStream(calls, lambda: client.watch_group(group_id), calls.timeout_s, now_s)


class GroupStream:
    """One stream. A server that says nothing for ``patience_s`` beyond its heartbeat is silent."""

    def __init__(
        self,
        calls: ServerCalls,
        open_call: Callable[[], Any],
        patience_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._calls = calls
        self._patience_s = self._silence_s = patience_s
        self._now_s = now_s
        self._news = threading.Condition()
        self._group: admin_pb2.Group | None = None
        self._error: CommandError | None = None
        self.heard_s = float("-inf")
        self.has_heard = False
        self._call = open_call()
        threading.Thread(target=self._read, name="watch", daemon=True).start()

    def next(self) -> admin_pb2.Group:
        """Wait for the newest group that was not seen. Raises ``CommandError``."""
        with self._news:
            while True:
                if self._group is not None:
                    group, self._group = self._group, None
                    return group
                if self._error is not None:
                    raise self._error
                if not self._news.wait(self._silence_s):
                    raise SilentServer(self._calls.server, self._silence_s)

    def close(self) -> None:
        """Read no more."""
        self._call.cancel()

    def _read(self) -> None:
        try:
            with self._calls.errors():
                for message in self._call:
                    self._note(message)
            self._fail(CommandError("the server has ended the watch", ExitCode.UNREACHABLE))
        except CommandError as error:
            self._fail(error)

    def _note(self, message: admin_pb2.WatchGroupResponse) -> None:
        with self._news:
            self.has_heard = True
            self.heard_s = self._now_s()
            self._silence_s = self._patience_s + message.heartbeat_interval_ms / 1_000
            if message.HasField("group"):
                self._group = message.group
            self._news.notify()

    def _fail(self, error: CommandError) -> None:
        with self._news:
            self._error = error
            self._news.notify()
