"""The outcome of a command, as data: records, a response, effects."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from coordinator.core.state import conversion
from coordinator.core.state.classic.classic_group import ClassicGroup, Phase
from coordinator.core.state.consumer.prepared_target import PreparedTarget
from coordinator.core.state.conversion import Converted
from coordinator.core.state.steps import Steps, run_at_once
from model.commands.classic import ClassicDeadline
from model.commands.consumer import ReconcileMember
from model.configs.assignor_configs import AssignorConfigs
from model.errors import GroupError
from model.ids import GroupId, MemberId
from model.log.commit_records import OffsetCommits
from model.log.records import Record
from model.log.side_records import SideRecord
from model.log.transaction_records import TransactionRecord
from model.past.causes import Cause
from model.responses.response import Response
from model.value import value


@value
class ComputeTarget:
    """Compute a target for the group; the result is an ``InstallTarget`` command.

    Not before ``not_before_ms`` (wall; KIP-1263), but within ``interval_ms``: the last target of an
    imported group may be dated by a clock that was ahead. Until then that target stays in force.
    """

    group_id: GroupId
    not_before_ms: int = 0
    interval_ms: int = 0


@value
class ResolveRegexes:
    """Resolve the group's regular expressions; the result is an ``InstallRegexes`` command."""

    group_id: GroupId


@value
class ArmRebalanceTimeout:
    """Expire the member after ``timeout_ms``, unless it has left ``member_epoch`` by then."""

    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    timeout_ms: int


@value
class ArmLeaveGrace:
    """Expire the member in ``timeout_ms``: it has gone, its partitions are reserved.

    ``silent_ms`` is how long nothing had been heard from it; ``None`` if it has left.
    """

    group_id: GroupId
    member_id: MemberId
    timeout_ms: int
    silent_ms: int | None = None


@value
class CancelRebalanceTimeout:
    """Cancel the rebalance timeout: the member has acknowledged its revocation."""

    group_id: GroupId
    member_id: MemberId


@value
class FinishResetSoon:
    """Send ``FinishReset`` after this outcome is applied."""

    group_id: GroupId


@value
class RefreshGroups:
    """Topics changed: send ``RefreshTopics`` to every group that subscribes to the name."""

    topic_name: str


@value
class ApplyGroupSettings:
    """Apply changed group configs at once; the fields are the values before the change."""

    group_id: GroupId
    assignors_before: tuple[str, ...]
    assignor_configs_before: AssignorConfigs


@value
class ArmClassicDeadline:
    """Issue ``ExpireClassicDeadline`` in ``timeout_ms``, unless it is armed again until then.

    ``member_id`` is empty for a deadline of the group. With ``stays``, a deadline that is armed
    already keeps its time.
    """

    group_id: GroupId
    deadline: ClassicDeadline
    member_id: MemberId
    timeout_ms: int
    stays: bool = False


@value
class BeginClassicSessions:
    """Begin the sessions of members that use the classic protocol from now on (timeouts in ms).

    Their group was converted, and their other deadlines are cancelled.
    """

    group_id: GroupId
    sessions: tuple[tuple[MemberId, int], ...]


@value
class RenewClassicSessions:
    """Renew the sessions of members of a classic group, which may be very many (timeouts in ms)."""

    group_id: GroupId
    sessions: tuple[tuple[MemberId, int], ...]


@value
class CancelClassicDeadline:
    """Cancel a deadline of a classic group or member."""

    group_id: GroupId
    deadline: ClassicDeadline
    member_id: MemberId


@value
class NoteRebalance:
    """A classic group begins a rebalance; ``reason`` is for the server's log."""

    group_id: GroupId
    generation: int
    reason: str
    cause: Cause | None = None


@value
class NoteEpochCauses:
    """A consumer group gets a new epoch; of ``count`` causes the first are here."""

    group_id: GroupId
    causes: tuple[Cause, ...]
    count: int = 1


@value
class EndClientAssignmentRequest:
    """End the request to a client-side assignor: installed, or failed and the server computes.

    ``reason`` is one of ``Stats.assignor_failures_by_reason``, ``None`` if it was installed.
    """

    group_id: GroupId
    group_epoch: int
    reason: str | None = None
    cause: str = ""


@value
class Wait:
    """Park the response: a release of this outcome or of a later one has it."""

    member_id: MemberId
    phase: Phase


@value
class Release:
    """Send the response to the parked JoinGroup or SyncGroup of a member."""

    member_id: MemberId
    phase: Phase
    answer: Response | GroupError


Effect: TypeAlias = (
    ComputeTarget
    | ResolveRegexes
    | ArmRebalanceTimeout
    | ArmLeaveGrace
    | CancelRebalanceTimeout
    | FinishResetSoon
    | RefreshGroups
    | ApplyGroupSettings
    | ArmClassicDeadline
    | BeginClassicSessions
    | RenewClassicSessions
    | CancelClassicDeadline
    | NoteRebalance
    | NoteEpochCauses
    | EndClientAssignmentRequest
)


@value
class Outcome:
    """The result of a command: what to replay and write, what to answer, what to carry out.

    ``records``, then ``commits``, are replayed and written; or instead a ``transaction``, which has
    no records beside it. ``side`` records are written in the same batch. ``prepared`` holds records
    that were built and encoded ahead of time. ``last_offsets``: after the records the group has no
    committed offsets (only the store knows, so the command says it).

    Either ``response`` is the answer, or ``then`` is the continuation, a command to handle after
    the targets of the batch are installed, whose outcome has the answer. ``response`` may be an
    error although something changed. With ``wait`` the response is parked, before the ``releases``
    are sent. ``classic`` is the new value of the classic group. ``converted`` is the group that
    the first records of a conversion build. With ``slices`` everything else is still missing: they
    produce the outcome, which is valid if the group has not changed in the meantime.
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
        """Whether the outcome writes anything."""
        return bool(self.records or self.commits or self.side or self.transaction is not None)

    @property
    def is_prepared(self) -> bool:
        """Whether some of its records were built ahead of time, in slices."""
        return self.prepared is not None or (
            self.converted is not None and bool(self.converted.blocks)
        )

    def with_side(self, side: tuple[SideRecord, ...]) -> Outcome:
        """The same outcome with other side records."""
        return self if side == self.side else replace(self, side=side)


def convert(steps: Steps[Outcome], weight: int) -> Outcome:
    """The outcome of a conversion: computed now for a small group, as ``slices`` for a large one.

    ``weight`` is that of its members (``coordinator.core.state.conversion``).
    """
    is_small = weight <= conversion.AT_ONCE_MAX
    return run_at_once(steps) if is_small else Outcome(slices=steps)
