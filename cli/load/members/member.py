"""What members of both protocols have for the load: a place in a group and on a connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from cli.load.members.group import Group
from cli.load.wire.lane import Call, Lane

_CORRELATION_IDS: Final = count(1)


def make_correlation_id() -> int:
    """A number for the requests of one call: responses on a connection come in order."""
    return next(_CORRELATION_IDS) & 0x7FFF_FFFF


class Keeper(Protocol):
    """What a member tells about itself."""

    def note_left(self, member: Member) -> None:
        """Its leave has been answered."""

    def note_interval(self, member: Member) -> None:
        """Its next heartbeat is due sooner than was known."""


class Member(Call):
    """A member: its heartbeat is a call, and it is one of those that a lane sends in turn.

    ``epoch`` is the member epoch or the generation, 0 while it is not a member. ``due_ns`` is when
    its keeper sends a heartbeat, unless the load has sent one.

    No client has two heartbeats in flight: the response to the first may bring a new epoch, and the
    second, which has the old one, is fenced.
    """

    __slots__ = (
        "due_ns",
        "epoch",
        "group",
        "interval_ns",
        "is_leaving",
        "keeper",
        "lane",
        "member_id",
        "owned",
    )

    is_exclusive = True

    def __init__(
        self, group: Group, lane: Lane, keeper: Keeper, member_id: str, interval_ns: int
    ) -> None:
        super().__init__()
        self.keeper = keeper
        self.due_ns = 0
        self.group = group
        self.lane = lane
        self.member_id = member_id
        self.epoch = 0
        self.owned: tuple[int, ...] = ()
        self.interval_ns = interval_ns
        self.is_leaving = False

    @abstractmethod
    def join(self) -> None:
        """Start to join."""

    @abstractmethod
    def leave(self) -> None:
        """Send the request that leaves; the member sends nothing after it."""

    @abstractmethod
    def note_reconnected(self) -> None:
        """Its connection was lost and there is a new one: a response may be lost."""


class Leave(Call):
    """A request that leaves a group, once; ``on_done`` is called when it has been answered."""

    __slots__ = ("_frame", "_on_done", "_read_code")

    def __init__(
        self, frame: bytes, read_code: Callable[[bytes], int], on_done: Callable[[], None]
    ) -> None:
        super().__init__()
        self._frame = frame
        self._read_code = read_code
        self._on_done = on_done

    def make_frame(self) -> bytes:
        """The request."""
        return self._frame

    def handle(self, answer: bytes) -> int:
        """Read the error code."""
        code = self._read_code(answer)
        self._on_done()
        return code
