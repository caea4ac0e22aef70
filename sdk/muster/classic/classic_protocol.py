"""What a classic group is about, as far as ``muster.classic.classic_engine`` needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from muster.assignors.classic import JoinedMember
from muster.errors import MusterError

NO_GENERATION: Final = -1
UNKNOWN_SERVER_ERROR: Final = -1


class AssignmentFailed(MusterError):
    """Raise it where a leader assigns and cannot: all who wait are told ``code`` and the message.

    ``code`` is one of Kafka's. The group then rebalances.
    """

    def __init__(self, message: str, code: int = UNKNOWN_SERVER_ERROR) -> None:
        super().__init__(message, code)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of a group, as one of its members is told of it.

    ``members`` are all of them, with what each said for the protocol that was chosen, where
    ``member_id`` is the leader; else there are none. Nobody leads in a consumer group.
    """

    generation: int
    member_id: str
    leader: str
    protocol_name: str
    members: tuple[JoinedMember, ...] = ()

    @property
    def is_leader(self) -> bool:
        """Whether the member assigns in this generation."""
        return self.member_id == self.leader


class GroupProtocol(Protocol):
    """What a member says, does when it leads, and does with what it is assigned.

    One of these is called at a time. Sessions are kept alive meanwhile.
    """

    protocol_type: str

    @property
    def caller(self) -> object:
        """Whose callbacks those of the member are."""

    def note_late(self, timeout_ms: int) -> None:
        """What runs is about to be cancelled: the member has had that long to close."""

    def make_protocols(self) -> Sequence[tuple[str, bytes]]:
        """What the member can follow and says for each, the preferred one first."""

    async def prepare_join(self) -> bool:
        """Before each join: gives up what may not be kept. Whether anything may be kept."""

    async def assign(self, generation: Generation) -> Mapping[str, bytes]:
        """As the leader: what each member gets. What it raises ends the generation."""

    async def note_skipped(self, generation: Generation) -> None:
        """As the leader that is back: the assignment stays as it is (KIP-814)."""

    def gives_up(self, assignment: bytes) -> bool:
        """Whether something of what the member has may not be in what it is assigned now."""

    async def take(
        self, generation: Generation, assignment: bytes, holds: Callable[[], bool]
    ) -> bool:
        """Takes what is assigned, as long as it ``holds``; whether to join again at once."""

    async def is_outdated(self) -> bool:
        """As the leader, from time to time: whether what it assigned has to change."""

    async def give_up(self) -> None:
        """Gives everything up; nobody else has it yet."""

    async def lose(self) -> None:
        """Everything is lost; somebody else may have it."""
