"""What handling a command comes to: records, an answer, effects. All of it data."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from coordinator.core.state import conversion
from coordinator.core.state.classic_group import ClassicGroup, Phase
from coordinator.core.state.conversion import Converted
from coordinator.core.state.prepared_target import PreparedTarget
from coordinator.core.state.steps import Steps, run_at_once
from model.commands import ClassicDeadline, ReconcileMember
from model.configs.assignor_configs import AssignorConfigs
from model.errors import GroupError
from model.ids import GroupId, MemberId
from model.log.commit_records import OffsetCommits
from model.log.records import Record
from model.log.side_records import SideRecord
from model.log.transaction_records import TransactionRecord
from model.responses import Response
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
    """The settings of a group changed: obey them at once. Before, these were in force."""

    group_id: GroupId
    assignors_before: tuple[str, ...]
    assignor_configs_before: AssignorConfigs


@value
class ArmClassicDeadline:
    """Send ``ExpireClassicDeadline`` in ``timeout_ms``, unless it is armed anew until then.

    ``member_id`` is empty for a deadline of the group. One that ``stays`` is left as it is where it
    is armed already.
    """

    group_id: GroupId
    deadline: ClassicDeadline
    member_id: MemberId
    timeout_ms: int
    stays: bool = False


@value
class BeginClassicSessions:
    """These members of a group that changed its type speak the classic protocol from now on.

    Each has its session timeout, in ms, from now, and no other deadline.
    """

    group_id: GroupId
    sessions: tuple[tuple[MemberId, int], ...]


@value
class RenewClassicSessions:
    """These members of a classic group, which may be very many, were heard from now.

    Each has its session timeout, in ms, from now.
    """

    group_id: GroupId
    sessions: tuple[tuple[MemberId, int], ...]


@value
class CancelClassicDeadline:
    """There is nothing to wait for any more."""

    group_id: GroupId
    deadline: ClassicDeadline
    member_id: MemberId


@value
class NoteRebalance:
    """A classic group begins a rebalance: why, for whoever reads the server's log."""

    group_id: GroupId
    generation: int
    reason: str


@value
class EndLocalRequest:
    """A member's assignment is installed; or it failed, and the server computes one at once.

    ``reason`` is one of ``Stats.assignor_failures_by_reason``, ``None`` where it is installed.
    """

    group_id: GroupId
    group_epoch: int
    reason: str | None = None
    cause: str = ""


@value
class Wait:
    """The answer comes with a later outcome, or with the releases of this one."""

    member_id: MemberId
    phase: Phase


@value
class Release:
    """Whoever waits for the answer to a member's join, or sync, gets it."""

    member_id: MemberId
    phase: Phase
    answer: Response | GroupError


Effect: TypeAlias = (
    ComputeTarget
    | ResolveRegexes
    | ArmRebalanceTimeout
    | CancelRebalanceTimeout
    | RefreshGroups
    | ApplyGroupSettings
    | ArmClassicDeadline
    | BeginClassicSessions
    | RenewClassicSessions
    | CancelClassicDeadline
    | NoteRebalance
    | EndLocalRequest
)


@value
class Outcome:
    """``records``, then ``commits``, are to be replayed and written, ``effects`` carried out.

    Or else there is a ``transaction`` to be replayed and written, and no records beside it.
    ``prepared`` has some of the records with what they come to, made before. With ``last_offsets``
    the group has no committed offset after the records: the command says so, for only the store
    knows.
    Either ``response`` is the answer, or ``then`` is a command to handle once the targets of
    the batch are there, and its outcome has the answer. An error is the response where
    something has changed all the same. With ``wait`` the answer is parked before the
    ``releases`` are given. ``classic`` is the value that the classic group has from now on.
    ``converted`` is what the first records come to where the group changes its type. With
    ``slices`` nothing else is there yet: they come to the outcome, if the group is still as it was
    at their beginning.
    """

    records: tuple[Record, ...] = ()
    response: Response | GroupError | None = None
    effects: tuple[Effect, ...] = ()
    then: ReconcileMember | None = None
    side: tuple[SideRecord, ...] = ()
    commits: tuple[OffsetCommits, ...] = ()
    transaction: TransactionRecord | None = None
    classic: ClassicGroup | None = None
    wait: Wait | None = None
    releases: tuple[Release, ...] = ()
    prepared: PreparedTarget | None = None
    last_offsets: bool = False
    converted: Converted | None = None
    slices: Steps[Outcome] | None = None

    @property
    def writes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.records or self.commits or self.side or self.transaction is not None)

    @property
    def is_prepared(self) -> bool:
        """Whether records of it were made in slices, before."""
        return self.prepared is not None or (
            self.converted is not None and bool(self.converted.blocks)
        )

    def with_side(self, side: tuple[SideRecord, ...]) -> Outcome:
        """The same with these side records in the place of its own."""
        return self if side == self.side else replace(self, side=side)


def convert(steps: Steps[Outcome], weight: int) -> Outcome:
    """What a conversion of a group comes to, or how it is come to in slices.

    ``weight`` is that of its members, as ``coordinator.core.state.conversion`` weighs them.
    """
    is_small = weight <= conversion.AT_ONCE_MAX
    return run_at_once(steps) if is_small else Outcome(slices=steps)
