"""The interface of a protocol type to ``muster.classic.classic_engine``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from muster.assignors.classic import JoinedMember
from muster.errors import MusterError

NO_GENERATION: Final = -1
UNKNOWN_SERVER_ERROR: Final = -1


class AssignmentFailed(MusterError):
    """A leader raises it if it cannot assign: all waiting members get ``code`` and the message.

    ``code`` is a Kafka error code. The group then rebalances.
    """

    def __init__(self, message: str, code: int = UNKNOWN_SERVER_ERROR) -> None:
        super().__init__(message, code)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of a group, as one of its members sees it.

    If ``member_id`` is the leader, ``members`` has all members with their metadata for the selected
    protocol; otherwise it is empty. A consumer group has no leader.
    """

    generation: int
    member_id: str
    leader: str
    protocol_name: str
    members: tuple[JoinedMember, ...] = ()

    @property
    def is_leader(self) -> bool:
        """Whether the member leads this generation."""
        return self.member_id == self.leader


class GroupProtocol(Protocol):
    """A member's metadata, its assignor if it leads, and what it does with its assignment.

    The methods are called one at a time. Heartbeats go on meanwhile.
    """

    protocol_type: str

    @property
    def caller(self) -> object:
        """The owner of the member's callbacks: see ``is_in_callback``."""

    def note_late(self, timeout_ms: int) -> None:
        """The callback that runs has exceeded the timeout of ``close``, and will be cancelled."""

    def make_protocols(self) -> Sequence[tuple[str, bytes]]:
        """The supported protocols in order of preference, each with the member's metadata."""

    async def prepare_join(self) -> bool:
        """Revoke, before a join, what may not be kept; returns whether anything may be."""

    async def assign(self, generation: Generation) -> Mapping[str, bytes]:
        """As the leader: return the assignment of each member. Raising ends the generation."""

    async def note_skipped(self, generation: Generation) -> None:
        """As a leader that has rejoined: the assignment stays as it is (KIP-814)."""

    def gives_up(self, assignment: bytes) -> bool:
        """Whether this assignment may lack something that the member has."""

    async def take(
        self, generation: Generation, assignment: bytes, holds: Callable[[], bool]
    ) -> bool:
        """Take the assignment while it ``holds``; returns whether to rejoin at once."""

    async def is_outdated(self) -> bool:
        """As the leader, from time to time: whether the assignment has to change."""

    async def give_up(self) -> None:
        """Revoke everything, while no other member owns it yet."""

    async def lose(self) -> None:
        """Drop all partitions without revoking them: another member may own them already."""
