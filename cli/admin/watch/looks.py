"""Where the looks at a group come from: asked for one by one, or told by the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from cli.admin.watch.group_stream import SilentServer
from cli.errors import CommandError, ExitCode
from cli.server_calls import UnknownCall

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

INTERVAL_S: Final = 1.0
"""The time between two looks at a server that has no stream, and between two attempts to reach
one that restarts."""

Clock = Callable[[], float]
Sleep = Callable[[float], None]


class Looks(Protocol):
    """Looks at one group, each later than the one before."""

    heard_s: float
    """When the server was last heard, by the clock of whoever looks."""

    def pause(self) -> None:
        """What is to be waited before the next look."""

    def look(self) -> admin_pb2.Group:
        """The next look. Raises ``CommandError``; a later look may succeed."""


class AskedLooks:
    """Looks at an interval."""

    def __init__(
        self,
        describe: Callable[[], admin_pb2.Group],
        interval_s: float,
        now_s: Clock,
        sleep: Sleep,
    ) -> None:
        self._describe = describe
        self._interval_s = interval_s
        self._now_s = now_s
        self._sleep = sleep
        self.heard_s = now_s()

    def pause(self) -> None:
        self._sleep(self._interval_s)

    def look(self) -> admin_pb2.Group:
        group = self._describe()
        self.heard_s = self._now_s()
        return group


class Stream(Protocol):
    """The server's messages about a group."""

    heard_s: float
    has_heard: bool

    def next(self) -> admin_pb2.Group:
        """Wait for the next one that has a group."""

    def close(self) -> None:
        """Read no more."""


class ToldLooks:
    """Looks that the server tells of, each as soon as something has changed.

    ``open_stream`` is called anew when a stream has ended. A server that is older than the stream
    is asked by ``asked``.
    """

    def __init__(self, open_stream: Callable[[], Stream], asked: AskedLooks, sleep: Sleep) -> None:
        self._open_stream = open_stream
        self._asked = asked
        self._sleep = sleep
        self._stream: Stream | None = None
        self._is_older = False
        self._has_failed = self._has_heard = False
        self.heard_s = asked.heard_s

    def pause(self) -> None:
        if self._is_older:
            self._asked.pause()
        elif self._has_failed:
            self._sleep(INTERVAL_S)

    def look(self) -> admin_pb2.Group:
        if not self._is_older:
            try:
                return self._look_at_stream()
            except UnknownCall:
                self._is_older = True
        group = self._asked.look()
        self.heard_s = self._asked.heard_s
        return group

    def close(self) -> None:
        """End the stream."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _look_at_stream(self) -> admin_pb2.Group:
        try:
            return self._next()
        except SilentServer:
            raise
        except CommandError as error:
            if error.exit_code is not ExitCode.UNREACHABLE or not self._has_heard:
                raise
        # The stream has ended: what counts is whether the server is there now.
        return self._next()

    def _next(self) -> admin_pb2.Group:
        self._has_heard = False
        if self._stream is None:
            self._stream = self._open_stream()
        stream = self._stream
        try:
            group = stream.next()
        except CommandError:
            self._has_failed = True
            self._has_heard = stream.has_heard
            self.close()
            raise
        finally:
            self.heard_s = max(self.heard_s, stream.heard_s)
        self._has_failed = False
        return group
