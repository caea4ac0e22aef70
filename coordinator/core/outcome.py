"""What handling a command comes to: records, an answer, effects. All of it data."""

from __future__ import annotations

from typing import TypeAlias

from model.commands import ReconcileMember
from model.ids import GroupId, MemberId
from model.records import OffsetCommits, Record, SideRecord
from model.responses import Response
from model.transactions import TransactionRecord
from model.value import value


@value
class ComputeTarget:
    """Compute a target for the group, answered with ``InstallTarget``.

    Not before ``not_before_ms`` (wall; KIP-1263): until then the old target stays in force.
    """

    group_id: GroupId
    not_before_ms: int = 0


@value
class ResolveRegexes:
    """Find the topics of the group's patterns, answered with ``InstallRegexes``."""

    group_id: GroupId


@value
class ArmRebalanceTimeout:
    """Expire the member unless it has left ``member_epoch`` by then."""

    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    timeout_ms: int


@value
class CancelRebalanceTimeout:
    """The member has moved on."""

    group_id: GroupId
    member_id: MemberId


@value
class RefreshGroups:
    """Topics changed: send ``RefreshTopics`` to every group that subscribes to the name."""

    topic_name: str


@value
class ApplyGroupSettings:
    """The settings of a group changed: obey them at once. ``assignors_before`` were its own."""

    group_id: GroupId
    assignors_before: tuple[str, ...]


Effect: TypeAlias = (
    ComputeTarget
    | ResolveRegexes
    | ArmRebalanceTimeout
    | CancelRebalanceTimeout
    | RefreshGroups
    | ApplyGroupSettings
)


@value
class Outcome:
    """``records``, then ``commits``, are to be replayed and written, ``effects`` carried out.

    Or else there is a ``transaction`` to be replayed and written, and no records beside it.
    Either ``response`` is the answer, or ``then`` is a command to handle once the targets of
    the batch are there, and its outcome has the answer.
    """

    records: tuple[Record, ...] = ()
    response: Response | None = None
    effects: tuple[Effect, ...] = ()
    then: ReconcileMember | None = None
    side: tuple[SideRecord, ...] = ()
    commits: tuple[OffsetCommits, ...] = ()
    transaction: TransactionRecord | None = None

    @property
    def writes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.records or self.commits or self.side or self.transaction is not None)
