"""A client that is a member, as far as it knows: what it was told, and what it says next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.differential.seen import Places
from tests.differential.steps import Epoch, Flaw


@dataclass
class MemberState:
    """``life`` counts the processes that were this member, each with an id of its own.

    It is no ``tests.support.members.Member``: the same state speaks to Kafka, and it remembers what
    is wrong by now, for it has to say that too.
    """

    name: str
    life: int = 0
    instance: str | None = None
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    told: Places = frozenset()
    previous_told: Places = frozenset()
    is_in: bool = False

    @property
    def member_id(self) -> str:
        return f"{self.name}.{self.life}"

    @property
    def former(self) -> MemberState:
        """The process before this one, which knows as much."""
        return replace(self, life=self.life - 1)

    def note(self, answer: Any, assignment: Places | None) -> None:
        """Take over what an answer without an error says."""
        if answer.member_epoch != self.epoch:
            self.previous_epoch, self.epoch = self.epoch, answer.member_epoch
        if assignment is not None and assignment != self.told:
            self.previous_told, self.told = self.told, assignment


def compute_flaw(flaw: Flaw) -> dict[str, Any]:
    """The fields of a join that make it wrong."""
    match flaw:
        case Flaw.OWNED_UNSAID:
            return {"topic_partitions": None}
        case Flaw.OWNED_SOMETHING:
            return {"topic_partitions": [{"topic_id": bytes(15) + b"\x01", "partitions": (0,)}]}
        case Flaw.NO_TOPICS:
            return {"subscribed_topic_names": None}
        case Flaw.NO_TIMEOUT:
            return {"rebalance_timeout": -1}
        case Flaw.UNKNOWN_ASSIGNOR:
            return {"server_assignor": "nobody"}
        case Flaw.NO_MEMBER_ID:
            return {"member_id": ""}
        case Flaw.NO_GROUP_ID:
            return {"group_id": ""}
        case Flaw.EMPTY_INSTANCE_ID:
            return {"instance_id": ""}
        case Flaw.EMPTY_RACK:
            return {"rack_id": ""}
        case Flaw.BAD_PATTERN:
            return {"subscribed_topic_regex": "(x"}


def choose_epoch(state: MemberState, epoch: Epoch) -> int:
    """The epoch that a member says; 1 where it was told none."""
    match epoch:
        case Epoch.CURRENT:
            return state.epoch or 1
        case Epoch.PREVIOUS:
            return state.previous_epoch or state.epoch or 1
        case Epoch.AHEAD:
            return state.epoch + 1
        case Epoch.BEHIND:
            return max(1, state.epoch - 2)
        case Epoch.NONE:
            return -1
        case Epoch.ODD:
            return -3
