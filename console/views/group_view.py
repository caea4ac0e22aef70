"""A group as it is shown: what it is, its members, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.charts.spark import Spark
from console.views.places import NO_PLACES, Places, compute_places
from muster.v1 import admin_pb2, types_pb2
from wording.times import render_second

WAITS_SHOWN: Final = 50
"""When a large group moves, every member may wait for many others."""

_GOOD: Final = frozenset({admin_pb2.GROUP_STATE_STABLE, admin_pb2.GROUP_STATE_EMPTY})


_MEMBER_STATES: Final[dict[int, str]] = {
    admin_pb2.MEMBER_STATE_STABLE: "stable",
    admin_pb2.MEMBER_STATE_UNREVOKED_PARTITIONS: "revoking partitions",
    admin_pb2.MEMBER_STATE_UNRELEASED_PARTITIONS: "waits for partitions",
}


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What a group is. ``lag`` is of all partitions together, empty if it is not known."""

    group_type: str
    state: str
    is_settled: bool
    is_classic: bool
    epoch: int
    target_epoch: int
    assignor: str
    members: int
    behind: int
    frozen: str
    lag: str = ""
    lag_seconds: str = ""
    lag_note: str = ""
    lag_spark: Spark | None = None
    lag_hint: str = ""


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One member; of a classic group it has the generation as its epoch.

    ``is_moving``: it has partitions to give up or to get. A row has nothing of the group's epochs,
    which change for all members at once.
    """

    member_id: str
    client_id: str
    client_host: str
    instance_id: str
    rack_id: str
    epoch: int
    is_moving: bool
    state: str
    assigned: Places
    pending: Places
    awaited: Places
    subscription: str
    protocol: str


@dataclass(frozen=True, slots=True)
class WaitRow:
    """A member that waits for partitions of another; wall times, empty if they are not known."""

    member_id: str
    owner_id: str
    places: Places
    since: str
    until: str


def compute_facts(group: admin_pb2.Group) -> GroupFacts:
    """What the group itself is."""
    is_classic = group.group_type == admin_pb2.GROUP_TYPE_CLASSIC
    frozen = ""
    if group.frozen_since_ms:
        frozen = f"since {render_second(group.frozen_since_ms)} by {group.frozen_by}"
    return GroupFacts(
        group_type=render_type(group.group_type),
        state=render_state(group.state),
        is_settled=group.state in _GOOD,
        is_classic=is_classic,
        epoch=group.group_epoch,
        target_epoch=group.assignment_epoch,
        assignor=(group.protocol if is_classic else group.assignor_name) or "-",
        members=len(group.members),
        behind=0 if is_classic else sum(_is_behind(group, member) for member in group.members),
        frozen=frozen,
    )


def _is_behind(group: admin_pb2.Group, member: admin_pb2.GroupMember) -> bool:
    """Whether a member has not reached its target."""
    is_there = member.member_epoch == group.assignment_epoch
    return not is_there or member.state != admin_pb2.MEMBER_STATE_STABLE


def compute_member(group: admin_pb2.Group, member: admin_pb2.GroupMember) -> MemberRow:
    """A member of the group."""
    is_classic = group.group_type == admin_pb2.GROUP_TYPE_CLASSIC
    awaited = NO_PLACES
    if not is_classic and member.waits:
        awaited = compute_places(_merge(member.waits))
    regex = member.subscribed_topic_regex
    subscription = ", ".join([*member.subscribed_topic_names, *([f"/{regex}/"] if regex else [])])
    return MemberRow(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        epoch=group.group_epoch if is_classic else member.member_epoch,
        is_moving=not is_classic and member.state != admin_pb2.MEMBER_STATE_STABLE,
        state="member" if is_classic else render_member_state(member.state),
        assigned=compute_places(member.assignment),
        pending=compute_places(member.pending_revocation),
        awaited=awaited,
        subscription=subscription,
        protocol=(
            "classic" if member.protocol == admin_pb2.MEMBER_PROTOCOL_CLASSIC else "consumer"
        ),
    )


def _merge(waits: Sequence[admin_pb2.MemberWait]) -> list[types_pb2.TopicPartitions]:
    """What a member waits for, whoever owns it."""
    found: dict[tuple[str, bytes], list[int]] = {}
    for wait in waits:
        for topic in wait.partitions:
            found.setdefault((topic.topic_name, topic.topic_id), []).extend(topic.partitions)
    return [
        types_pb2.TopicPartitions(topic_name=name, topic_id=topic_id, partitions=sorted(numbers))
        for (name, topic_id), numbers in sorted(found.items())
    ]


def compute_waits(group: admin_pb2.Group, now_ms: int) -> tuple[list[WaitRow], int]:
    """The first waits, and how many more there are. ``now_ms`` is the wall time of the answer."""
    rows: list[WaitRow] = []
    more = 0
    for member in group.members:
        for wait in member.waits:
            if len(rows) < WAITS_SHOWN:
                rows.append(_compute_wait(member.member_id, wait, now_ms))
            else:
                more += 1
    return rows, more


def _compute_wait(member_id: str, wait: admin_pb2.MemberWait, now_ms: int) -> WaitRow:
    has_since, has_left = wait.HasField("waited_ms"), wait.HasField("left_ms")
    return WaitRow(
        member_id,
        wait.owner_id,
        compute_places(wait.partitions),
        render_second(now_ms - wait.waited_ms) if has_since else "",
        render_second(now_ms + wait.left_ms) if has_left else "",
    )


def render_type(group_type: int) -> str:
    """``consumer``, ``classic``, ``share`` or ``streams``."""
    return admin_pb2.GroupType.Name(group_type).removeprefix("GROUP_TYPE_").lower()


def render_state(state: int) -> str:
    """The state as Kafka writes it: ``Stable``, ``PreparingRebalance``."""
    name = admin_pb2.GroupState.Name(state).removeprefix("GROUP_STATE_")
    return "".join(word.capitalize() for word in name.split("_"))


def render_member_state(state: int) -> str:
    """What a member does, in words."""
    return _MEMBER_STATES.get(state, "unknown")
