"""What a side answered, with topics by name, and held against what the other side answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Any, NamedTuple

from model.errors import ErrorCode
from muster.assignors.embedded.consumer_protocol import (
    NO_GENERATION,
    decode_subscription,
    encode_subscription,
)
from muster.assignors.embedded.fields import MalformedProtocolError

Places = frozenset[tuple[str, int]]
"""Partitions by the name of their topic."""

ASSIGNING, STABLE, EMPTY, PREPARING = "Assigning", "Stable", "Empty", "PreparingRebalance"


class Mode(Enum):
    """How two sides are compared."""

    EXACT = auto()
    """Every answer. For the range assignor, and targets that are computed at once."""
    QUALITY = auto()
    """Assignments by validity, balance and moves, in settled groups. For uniform."""
    SETTLED = auto()
    """Error codes, and settled groups: targets are computed once in an interval."""


class MemberView(NamedTuple):
    member_epoch: int
    instance_id: str
    topics: frozenset[str]
    pattern: str
    assigned: Places
    target: Places


class GroupView(NamedTuple):
    """A group as ConsumerGroupDescribe shows it."""

    code: int
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: Mapping[str, MemberView]

    @property
    def owners(self) -> dict[tuple[str, int], str]:
        return {
            place: member_id
            for member_id, member in self.members.items()
            for place in member.assigned
        }


class ClassicRow(NamedTuple):
    """A member as DescribeGroups shows it."""

    member_id: str
    instance: str
    client_id: str
    metadata: bytes
    assignment: bytes


class ClassicView(NamedTuple):
    """A group as DescribeGroups shows it."""

    code: int
    state: str
    protocol_type: str
    protocol: str
    members: tuple[ClassicRow, ...]

    @property
    def is_deserted(self) -> bool:
        """Nobody is left, and the rebalance ends as soon as the coordinator looks at its clock."""
        return self.state == PREPARING and not self.members

    @property
    def is_gathering(self) -> bool:
        """A rebalance waits for members that are there."""
        return self.state == PREPARING and bool(self.members)


class Seen(NamedTuple):
    """Of one step: error codes, the member's epoch and assignment, and whatever else it has."""

    codes: tuple[int, ...]
    epoch: int | None = None
    assignment: Places | None = None
    group: GroupView | None = None
    is_settled: bool = False
    rest: Any = None
    answers: Sequence[tuple[Any, ...]] = ()
    """To classic members, who may have asked in a step before this."""
    roster: Sequence[tuple[str, bytes]] = ()
    """The members that a leader of a classic group was told, whoever it is, and what they said."""


def find_difference(
    mode: Mode, kafka: Seen, muster: Seen, *, is_range: bool, moves: Moves | None = None
) -> str | None:
    """What differs, in words; ``None`` where nothing does that should not."""
    if kafka.codes != muster.codes:
        return f"codes: Kafka {kafka.codes}, Muster {muster.codes}"
    if mode is Mode.SETTLED:
        answers = _forget_known(kafka.answers, muster.answers)
        muster = _forget_generations(kafka, muster)._replace(answers=answers)
    if kafka.rest != muster.rest:
        return f"Kafka {kafka.rest}, Muster {muster.rest}"
    if kafka.answers != muster.answers:
        return f"classic members:\n    Kafka  {kafka.answers}\n    Muster {muster.answers}"
    if kafka.roster and muster.roster and kafka.roster != muster.roster:
        return f"members that the leader is told: Kafka {kafka.roster}, Muster {muster.roster}"
    if mode is not Mode.SETTLED and kafka.epoch != muster.epoch:
        return f"member epoch: Kafka {kafka.epoch}, Muster {muster.epoch}"
    if mode is Mode.EXACT and kafka.assignment != muster.assignment:
        return f"assignment: Kafka {_show(kafka.assignment)}, Muster {_show(muster.assignment)}"
    if kafka.group is None or muster.group is None:
        return None
    if kafka.is_settled:
        return _find_difference_in_settled(mode, kafka, muster, is_range, moves)
    return _find_difference_in_groups(kafka.group, muster.group) if mode is Mode.EXACT else None


def _find_difference_in_settled(
    mode: Mode, kafka: Seen, muster: Seen, is_range: bool, moves: Moves | None
) -> str | None:
    assert kafka.group is not None
    assert muster.group is not None
    if is_ahead(mode, kafka):
        return _find_difference_in_unwanted(muster.group)
    if is_waiting(mode, kafka):
        # Kafka waits for a heartbeat, and classic members, who alone are there, have none such.
        kafka, muster = (_forget_what_they_have(seen) for seen in (kafka, muster))
    assert kafka.group is not None
    assert muster.group is not None
    if not is_range:
        return _find_difference_in_quality(kafka.group, muster.group, moves)
    return _find_difference_in_groups(kafka.group, muster.group)


def _forget_known(
    kafka: Sequence[tuple[Any, ...]], muster: Sequence[tuple[Any, ...]]
) -> Sequence[tuple[Any, ...]]:
    """Muster's answers to classic members of consumer groups, without what is known to differ.

    Kafka names no member where it refuses one, and no generation to whose join the group becomes a
    classic one. A SyncGroup has to name the member's first protocol there.
    """
    if len(kafka) != len(muster):
        return muster
    found = []
    for theirs, ours in zip(kafka, muster, strict=True):
        name, kind, code, *rest = ours
        if kind == "join" and theirs[:3] == ours[:3]:
            generation, kind_of, protocol, given = rest
            if code and not theirs[6]:
                given = ""
            if not code and theirs[3] == 0:
                generation = 0
            found.append((name, kind, code, generation, kind_of, protocol, given))
        elif (
            kind == "sync"
            and theirs[:3] == (name, kind, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            and not code
        ):
            found.append(theirs)
        else:
            found.append(ours)
    return tuple(found)


def _forget_generations(kafka: Seen, muster: Seen) -> Seen:
    """Muster's, with the generations that members say on Kafka's side where those are older.

    While classic members alone of a consumer group are heard from, Kafka computes no target, and
    they stay at the epoch before. What they own is of that epoch, and they say so.
    """
    theirs, ours = kafka.rest, muster.rest
    if isinstance(theirs, ClassicView) and isinstance(ours, ClassicView):
        said = _say_older_generations(
            [row.metadata for row in theirs.members], [row.metadata for row in ours.members]
        )
        rows = zip(ours.members, said, strict=True)
        members = tuple(row._replace(metadata=each) for row, each in rows)
        muster = muster._replace(rest=ours._replace(members=members))
    said = _say_older_generations(
        [each for _, each in kafka.roster], [each for _, each in muster.roster]
    )
    names = (name for name, _ in muster.roster)
    return muster._replace(roster=tuple(zip(names, said, strict=True)))


def _say_older_generations(theirs: Sequence[bytes], ours: Sequence[bytes]) -> Sequence[bytes]:
    if len(theirs) != len(ours):
        return ours
    return [_say_older_generation(*each) for each in zip(theirs, ours, strict=True)]


def _say_older_generation(theirs: bytes, ours: bytes) -> bytes:
    try:
        known, said = decode_subscription(theirs), decode_subscription(ours)
    except MalformedProtocolError:
        return ours
    if not NO_GENERATION < known.generation < said.generation:
        return ours
    return encode_subscription(
        replace(said, generation=known.generation), int.from_bytes(ours[:2], "big")
    )


def _find_settled(mode: Mode, seen: Seen) -> GroupView | None:
    """The group, where settled groups are compared and this one is."""
    return seen.group if mode is Mode.SETTLED and seen.is_settled else None


def is_ahead(mode: Mode, kafka: Seen) -> bool:
    """Whether Muster is an epoch ahead from now on, for it gave somebody what it wants."""
    group = _find_settled(mode, kafka)
    return group is not None and _gives_unwanted(group)


def is_told_anew(mode: Mode, kafka: Seen, muster: Seen) -> bool:
    """Whether Muster is an epoch ahead from now on, for it told all members what they have.

    It does so where a group is upgraded while it prepares a rebalance: after a downgrade nobody
    knows what the record assigns, and Kafka takes it for known.
    """
    theirs, ours = _find_settled(mode, kafka), muster.group
    return theirs is not None and ours is not None and ours.group_epoch == theirs.group_epoch + 1


def forget_epochs(seen: Seen) -> Seen:
    """A side's, without the epochs of its group and the generations of its classic members."""
    answers = tuple(
        (*answer[:3], 0, *answer[4:]) if answer[1] == "join" else answer for answer in seen.answers
    )
    group = seen.group
    if group is not None:
        rows = group.members.items()
        members = {name: row._replace(member_epoch=0) for name, row in rows}
        group = group._replace(group_epoch=0, assignment_epoch=0, members=members)
    return seen._replace(answers=answers, group=group)


def is_by_leader(mode: Mode, kafka: Seen, muster: Seen) -> bool:
    """Whether Kafka's target is what the leader of a classic group gave, and none of an assignor.

    An upgrade without a new epoch leaves it until the next one. Where Muster is an epoch ahead it
    has a target of the range assignor, which may give the same partitions to others.
    """
    theirs, ours = _find_settled(mode, kafka), muster.group
    if theirs is None or ours is None or theirs.state != STABLE or _gives_unwanted(theirs):
        return False
    ranges = _give_ranges(theirs, ours).members
    return any(row.target != ranges[name].target for name, row in theirs.members.items())


def compute_with_ranges(kafka: Seen, muster: Seen) -> Seen:
    """Kafka's, with the target that it would compute with a new epoch."""
    assert kafka.group is not None
    assert muster.group is not None
    return kafka._replace(group=_give_ranges(kafka.group, muster.group))


def _give_ranges(kafka: GroupView, muster: GroupView) -> GroupView:
    """Of each topic that either side gives, a range to each of its subscribers in their order."""
    views = kafka, muster
    given = [place for view in views for row in view.members.values() for place in row.target]
    counts: dict[str, int] = {}
    for topic, partition in given:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    has: dict[str, set[tuple[str, int]]] = {name: set() for name in kafka.members}
    for topic, count in counts.items():
        takers = [
            name
            for _, _, name in sorted(
                (not row.instance_id, row.instance_id, name)
                for name, row in kafka.members.items()
                if topic in row.topics
            )
        ]
        for index, name in enumerate(takers):
            share, more = divmod(count, len(takers))
            first = index * share + min(index, more)
            has[name] |= {(topic, first + each) for each in range(share + (index < more))}
    members = {
        name: row._replace(assigned=frozenset(has[name]), target=frozenset(has[name]))
        for name, row in kafka.members.items()
    }
    return kafka._replace(members=members)


def is_waiting(mode: Mode, kafka: Seen) -> bool:
    """Whether Kafka waits for a heartbeat to compute a target, and gives nobody anything before."""
    group = _find_settled(mode, kafka)
    return group is not None and group.state == ASSIGNING


def forget_assignments(seen: Seen) -> Seen:
    """A side's, without what classic members were given, and the generation that they are at:
    who was given more has more to give up before the next."""
    answers = tuple(
        (*answer[:5], None) if answer[1] == "sync" else (*answer[:3], 0, *answer[4:])
        for answer in seen.answers
    )
    return seen._replace(answers=answers)


def _find_difference_in_groups(kafka: GroupView, muster: GroupView) -> str | None:
    if kafka.state in (ASSIGNING, EMPTY):
        # Kafka computes a target with the next heartbeat, Muster as soon as the group has changed.
        kafka, muster = (_forget_target(view) for view in (kafka, muster))
    if kafka == muster:
        return None
    return f"group:\n    Kafka  {_show_group(kafka)}\n    Muster {_show_group(muster)}"


def _forget_what_they_have(seen: Seen) -> Seen:
    assert seen.group is not None
    rows = seen.group.members
    members = {
        name: row._replace(member_epoch=0, assigned=frozenset()) for name, row in rows.items()
    }
    return seen._replace(group=seen.group._replace(members=members))


def _forget_target(view: GroupView) -> GroupView:
    members = {name: member._replace(target=frozenset()) for name, member in view.members.items()}
    state = EMPTY if view.state == EMPTY else ASSIGNING
    return view._replace(state=state, assignment_epoch=0, members=members)


def _gives_unwanted(view: GroupView) -> bool:
    """Whether somebody has partitions of topics that it does not subscribe to.

    Kafka leaves them so where a group was upgraded in the midst of a rebalance. What members say
    has the name of their sequence before that of the topic, and does not tell a topic from the one
    of its name before it, which a target does.
    """
    return any(
        topic.rstrip("'") not in {name.rsplit("-", 1)[-1] for name in member.topics}
        for member in view.members.values()
        if not member.pattern
        for topic, _ in member.target
    )


def _find_difference_in_unwanted(muster: GroupView) -> str | None:
    if muster.state != STABLE or not _gives_unwanted(muster):
        return None
    return f"somebody has what it does not want: {_show_group(muster)}"


def _find_difference_in_quality(
    kafka: GroupView, muster: GroupView, moves: Moves | None
) -> str | None:
    plain_kafka, plain_muster = (_forget_places(view) for view in (kafka, muster))
    if kafka.state in (ASSIGNING, EMPTY):
        plain_kafka, plain_muster = (_forget_target(view) for view in (plain_kafka, plain_muster))
    if plain_kafka != plain_muster:
        return f"group:\n    Kafka  {_show_group(kafka)}\n    Muster {_show_group(muster)}"
    views = kafka, muster
    for view in views:
        counts = Counter(place for member in view.members.values() for place in member.assigned)
        if any(count > 1 for count in counts.values()):
            return f"two members hold one partition: {_show_group(view)}"
    # Where nobody takes over what a member has left for a while, it is not the same partitions.
    if kafka.state == STABLE and kafka.owners.keys() != muster.owners.keys():
        return f"held: Kafka {_show(kafka.owners)}, Muster {_show(muster.owners)}"
    sizes = [_list_sizes(view) for view in views]
    if kafka.state != ASSIGNING and sizes[1] > sizes[0]:
        return f"balance: Kafka {sizes[0]}, Muster {sizes[1]}"
    if moves is not None and moves.musters > max(moves.kafkas, moves.needed):
        return f"partitions moved: {moves}"
    return None


def _forget_places(view: GroupView) -> GroupView:
    members = {
        name: member._replace(assigned=frozenset(), target=frozenset())
        for name, member in view.members.items()
    }
    return view._replace(members=members)


def _list_sizes(view: GroupView) -> list[int]:
    """How many partitions members are to have, the most first: less is better balanced."""
    return sorted((len(member.target) for member in view.members.values()), reverse=True)


class Moves(NamedTuple):
    """Partitions that went from a member that is still there to another; ``needed`` to balance."""

    kafkas: int
    musters: int
    needed: int


def compute_moves(
    before: tuple[GroupView, GroupView], after: tuple[GroupView, GroupView]
) -> Moves | None:
    """Of Kafka and of Muster; ``None`` where the subscriptions differ, and how many are needed
    depends on who had what.
    """
    views = (*before, *after)
    if len({member.topics for view in views for member in view.members.values()}) > 1:
        return None
    kafkas, musters = (_count_moves(*pair) for pair in zip(before, after, strict=True))
    return Moves(kafkas, musters, _count_needed_moves(before[1], after[1]))


def _count_moves(before: GroupView, after: GroupView) -> int:
    owners = after.owners
    return sum(
        owner in after.members and place in owners and owners[place] != owner
        for place, owner in before.owners.items()
    )


def _count_needed_moves(before: GroupView, after: GroupView) -> int:
    """What members have above their share, the largest shares going to those who have most."""
    if not after.members:
        return 0
    share, more = divmod(len(after.owners), len(after.members))
    had = Counter(owner for owner in before.owners.values() if owner in after.members)
    sizes = sorted((had[name] for name in after.members), reverse=True)
    return sum(max(0, size - share - (number < more)) for number, size in enumerate(sizes))


def _show(places: Any) -> str:
    if places is None:
        return "nothing"
    return " ".join(f"{topic}:{partition}" for topic, partition in sorted(places)) or "none"


def _show_group(view: GroupView) -> str:
    head = f"{view.code} {view.state} {view.group_epoch}/{view.assignment_epoch} {view.assignor}"
    members = [
        f"{name}@{member.member_epoch} {member.instance_id} {sorted(member.topics)}"
        f" {member.pattern} [{_show(member.assigned)}] -> [{_show(member.target)}]"
        for name, member in sorted(view.members.items())
    ]
    return "; ".join([head, *members])
