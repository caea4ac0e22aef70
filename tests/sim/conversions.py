"""Groups that change their type: S21 and S22, and where a server dies in the middle of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from model.commands.classic import ClassicHeartbeat, SyncGroup
from model.configs.migration_policy import allows_downgrade, allows_upgrade
from model.errors import ErrorCode, GroupError
from model.ids import InstanceId
from model.log.records import OffsetCommitKey, Record
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from model.topics import TopicImage
from tests.sim.checkers.classic_checkers import Change, decode_places
from tests.sim.checkers.violations import check
from tests.support.shadow import Place

Kind = Literal["upgrade", "downgrade"]


class AssignmentState(NamedTuple):
    """What the target gives a member, and what it has."""

    target: frozenset[Place]
    held: frozenset[Place]
    instance_id: str | None = None


Targets = Mapping[str, AssignmentState]

BEFORE_WRITE: Final = "crash before it is written"
BEFORE_SYNC: Final = "crash before it is durable"
AFTER_SYNC: Final = "crash when it is durable"
AFTER_ANSWER: Final = "crash when it is answered"
STAGES: Final = (BEFORE_WRITE, BEFORE_SYNC, AFTER_SYNC, AFTER_ANSWER)
ANSWERED_AFTER_TURNS = 3


@dataclass
class Conversion:
    """One that is on its way to the disk. ``crash_at`` is where the server dies, if it does."""

    kind: Kind
    group_id: str
    records: tuple[Record, ...]
    crash_at: str | None
    is_written: bool = False
    is_durable: bool = False
    turns: int = 0
    """Since it was durable."""

    @property
    def is_due(self) -> bool:
        """Whether the server dies between this turn and the next."""
        match self.crash_at:
            case None:
                return False
            case "crash before it is written":
                return not self.is_written
            case "crash before it is durable":
                return self.is_written
            case "crash when it is durable":
                return self.is_durable
            case _:
                return self.is_durable and self.turns > ANSWERED_AFTER_TURNS

    @property
    def stage(self) -> str:
        """Where it is."""
        if not self.is_written:
            return BEFORE_WRITE
        if not self.is_durable:
            return BEFORE_SYNC
        return AFTER_ANSWER if self.turns > ANSWERED_AFTER_TURNS else AFTER_SYNC


def find_conversion(change: Change) -> Kind | None:
    """Whether a group with members became one of the other type."""
    before, after = change.classic_before, change.outcome.classic
    if before is not None and before.members and change.group is not None:
        return "upgrade"
    # An empty consumer group makes way for a new classic one, which is no conversion.
    is_other = change.had_consumer_group and after is not None and after.generation > 0
    return "downgrade" if is_other else None


def check_conversion(kind: Kind, change: Change, targets: Targets) -> None:
    """S21: it is allowed and whole, and offsets and assignments stay as they are."""
    group_id = change.group_id
    policy = change.shard.settings_of(group_id).group_consumer_migration_policy
    is_allowed = allows_upgrade(policy) if kind == "upgrade" else allows_downgrade(policy)
    check(is_allowed, "S21", f"{group_id}: {kind} although the policy is {policy}")
    offsets = [each.key for each in change.outcome.records if isinstance(each.key, OffsetCommitKey)]
    check(not offsets, "S21", f"{group_id}: {kind} touches {offsets}")
    if kind == "upgrade":
        assert change.classic_before is not None
        assert change.group is not None
        _check_upgraded(change, change.classic_before, change.group)
    else:
        assert change.outcome.classic is not None
        _check_downgraded(change.outcome.classic, targets, change.shard.image)


def _check_upgraded(change: Change, before: ClassicGroup, group: ConsumerGroup) -> None:
    """Each member has what its leader gave it, as far as that exists and nobody else has it."""
    image = change.shard.image
    taken: set[Place] = set()
    for member_id, member in before.members.items():
        given = {
            (topic_id, partition)
            for topic_id, partition in decode_places(member.assignment, image) - taken
            if 0 <= partition < image.by_id[topic_id].partitions
        }
        taken |= given
        instance_id = getattr(change.command, "instance_id", None)
        if member.instance_id is not None and member.instance_id == instance_id:
            # The newcomer has taken its place.
            continue
        found = group.member(member_id)
        check(found is not None, "S21", f"{member_id} is lost")
        assert found is not None, "it was checked"
        topics = group.numbers.topic_partitions(found.assigned)
        held = {(topic.topic_id, p) for topic in topics for p in topic.partitions}
        is_kept = given <= held and found.member_epoch == max(before.generation, 1)
        what = f"{member_id} had {given} at {before.generation}, and has {held} now"
        check(is_kept, "S21", what)


def _check_downgraded(after: ClassicGroup, targets: Targets, image: TopicImage) -> None:
    """Each member has what it had, and what the target gives it and nobody else has.

    A static member that another one takes the place of has what it had by its new id.
    """
    stays = {
        after.instances.get(InstanceId(standing.instance_id or ""), member_id): standing
        for member_id, standing in targets.items()
        if member_id in after.members or standing.instance_id in after.instances
    }
    twice: Counter[Place] = Counter()
    for member_id, member in after.members.items():
        given = decode_places(member.assignment, image)
        twice.update(given)
        if member_id in stays:
            taken = {p for each, other in stays.items() if each != member_id for p in other.held}
            target, held, _ = stays[member_id]
            wanted = {place for place in (target - taken) | held if place[0] in image.by_id}
            check(given == wanted, "S21", f"{member_id} had {wanted}, and has {given} now")
    several = [place for place, owners in twice.items() if owners > 1]
    check(not several, "S21", f"{several} are given to more than one member")


def compute_targets(group: ConsumerGroup | None) -> Targets:
    """What the target gives each member, where there are classic ones."""
    if group is None or not group.classic_member_count:
        return {}
    return {
        member.member_id: AssignmentState(
            _places(group, member.target or ()),
            _places(group, (*member.assigned, *member.pending_revocation)),
            None if member.metadata is None else member.metadata.instance_id,
        )
        for member in group.members()
    }


def _places(group: ConsumerGroup, numbers: Iterable[int]) -> frozenset[Place]:
    topics = group.numbers.topic_partitions(sorted(numbers))
    return frozenset((topic.topic_id, p) for topic in topics for p in topic.partitions)


def check_mixed(change: Change) -> None:
    """S22: to a classic member of a consumer group its generation is its member epoch."""
    group, command, response = change.group, change.command, change.outcome.response
    if group is None or not change.had_consumer_group:
        return
    if isinstance(response, JoinGroupResponse):
        member = group.member(response.member_id)
        epoch = None if member is None else member.member_epoch
        is_so = epoch == response.generation and response.leader is None and not response.members
        check(is_so, "S22", f"{response} for a member at {epoch}")
    if not isinstance(command, SyncGroup | ClassicHeartbeat):
        return
    member = group.member(command.member_id)
    is_heard = (
        not isinstance(response, GroupError) or response.code is ErrorCode.REBALANCE_IN_PROGRESS
    )
    is_current = member is not None and command.generation == member.member_epoch
    is_classic = member is not None and member.classic is not None
    check(
        not is_heard or (is_current and is_classic),
        "S22",
        f"{command.member_id} of {command.generation} was heard: {member}",
    )
    if isinstance(response, SyncGroupResponse) and member is not None:
        told = decode_places(response.assignment, change.shard.image)
        topics = group.numbers.topic_partitions(member.assigned)
        by_id = change.shard.image.by_id
        known = {(t.topic_id, p) for t in topics for p in t.partitions if t.topic_id in by_id}
        check(told == known, "S22", f"{member.member_id} has {known}, and is told {told}")
