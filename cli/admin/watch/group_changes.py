"""What is different between two descriptions of one group; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cli.admin.group.group_renders import is_classic, render_subscription
from cli.admin.group.group_waits import name_partitions, render_names, render_wait_for
from wording.groups import render_group_state, render_member_state, render_type
from wording.times import render_second

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

AWAY_EPOCH: Final = -2
"""The epoch of a static member that is away: its partitions are kept for its instance."""

NOBODY: Final = "nobody"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its name and its values for programs, its text for people."""

    name: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


def compute_changes(before: admin_pb2.Group, after: admin_pb2.Group) -> Iterator[Change]:
    """What has changed: the group itself, then its members, their partitions and their waits."""
    yield from _compare_groups(before, after)
    old, new = _by_id(before), _by_id(after)
    for member_id, member in old.items():
        if member_id not in new:
            yield _describe_left(member)
    for member_id, member in new.items():
        known = old.get(member_id)
        if known is None:
            yield _describe_joined(member)
        else:
            yield from _compare_members(known, member, is_classic(after))
    yield from _compare_owners(before, after)
    yield from _compare_waits(old, new)


def _by_id(group: admin_pb2.Group) -> dict[str, admin_pb2.GroupMember]:
    return {member.member_id: member for member in group.members}


# --------------------------------------------------------------------------------- the group


def _compare_groups(before: admin_pb2.Group, after: admin_pb2.Group) -> Iterator[Change]:
    epoch = "generation" if is_classic(after) else "group epoch"
    rows = (
        ("type", "type", render_type(before.group_type), render_type(after.group_type)),
        ("state", "state", render_group_state(before.state), render_group_state(after.state)),
        ("group_epoch", epoch, before.group_epoch, after.group_epoch),
        (
            "assignment_epoch",
            "target assignment epoch",
            before.assignment_epoch,
            after.assignment_epoch,
        ),
        ("assignor", "assignor", before.assignor_name, after.assignor_name),
        ("protocol", "protocol", before.protocol, after.protocol),
        ("frozen", "frozen", _render_frozen(before), _render_frozen(after)),
    )
    for name, label, old, new in rows:
        if old != new:
            text = f"{label} {_show(old)} -> {_show(new)}"
            yield Change(f"{name}_changed", text, {"before": old, "after": new})


def _render_frozen(group: admin_pb2.Group) -> str:
    if not group.frozen_since_ms:
        return "no"
    return f"since {render_second(group.frozen_since_ms)} by {group.frozen_by}"


def _show(value: object) -> str:
    return "-" if value == "" else str(value)


# ------------------------------------------------------------------------------- the members


def _name_member(member: admin_pb2.GroupMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }


def _describe_joined(member: admin_pb2.GroupMember) -> Change:
    static = f", instance {member.instance_id}" if member.instance_id else ""
    text = (
        f"{member.member_id} joined (client {member.client_id or '-'} on "
        f"{member.client_host or '-'}{static})"
    )
    return Change("member_joined", text, _name_member(member))


def _describe_left(member: admin_pb2.GroupMember) -> Change:
    names = name_partitions(member.assignment)
    had = f"; it had {render_names(names)}" if names else ""
    values = _name_member(member) | {"partitions": names}
    return Change("member_left", f"{member.member_id} is gone{had}", values)


def _compare_members(
    before: admin_pb2.GroupMember, after: admin_pb2.GroupMember, is_classic_group: bool
) -> Iterator[Change]:
    name = after.member_id
    if not is_classic_group:
        states = render_member_state(before.state), render_member_state(after.state)
        epochs = before.member_epoch, after.member_epoch
        moved = {"before": epochs[0], "after": epochs[1], "state": states[1]}
        if epochs[0] != epochs[1]:
            text = f"{name} epoch {epochs[0]} -> {epochs[1]}, {states[1]}"
            if epochs[1] == AWAY_EPOCH:
                text = f"{name} is away; its partitions are kept for {after.instance_id or 'it'}"
            yield Change("member_epoch_changed", text, _name_member(after) | moved)
        elif states[0] != states[1]:
            values = {"before": states[0], "after": states[1]}
            text = f"{name} {states[0]} -> {states[1]}"
            yield Change("member_state_changed", text, _name_member(after) | values)
    subscriptions = render_subscription(before), render_subscription(after)
    # A classic group shows subscriptions only while it is Stable.
    if all(subscriptions) and subscriptions[0] != subscriptions[1]:
        values = {"before": subscriptions[0], "after": subscriptions[1]}
        text = f"{name} subscribes to {subscriptions[1]}"
        yield Change("subscription_changed", text, _name_member(after) | values)


# ----------------------------------------------------------------------------- the partitions


def _compare_owners(before: admin_pb2.Group, after: admin_pb2.Group) -> Iterator[Change]:
    """Partitions that others own now; a line for each pair of an old and a new owner."""
    old, new = _find_owners(before), _find_owners(after)
    moves: dict[tuple[str, str], list[str]] = {}
    for partition, owner in old.items():
        now = new.get(partition, "")
        if now != owner:
            moves.setdefault((owner, now), []).append(partition)
    for partition, owner in new.items():
        if partition not in old:
            moves.setdefault(("", owner), []).append(partition)
    for (owner, now), partitions in moves.items():
        text = f"{render_names(partitions)}: {owner or NOBODY} -> {now or NOBODY}"
        values = {"partitions": partitions, "before": owner or None, "after": now or None}
        yield Change("partitions_moved", text, values)
    yield from _compare_revocations(before, after)


def _find_owners(group: admin_pb2.Group) -> dict[str, str]:
    """The owner of each partition; who still has to give it up owns it."""
    owners = {}
    for member in group.members:
        for topics in (member.assignment, member.pending_revocation):
            for partition in name_partitions(topics):
                owners[partition] = member.member_id
    return owners


def _compare_revocations(before: admin_pb2.Group, after: admin_pb2.Group) -> Iterator[Change]:
    asked = {
        member.member_id: set(name_partitions(member.pending_revocation))
        for member in before.members
    }
    for member in after.members:
        known = asked.get(member.member_id, set())
        partitions = [
            name for name in name_partitions(member.pending_revocation) if name not in known
        ]
        if partitions:
            text = f"{member.member_id} has to give up {render_names(partitions)}"
            values = _name_member(member) | {"partitions": partitions}
            yield Change("revocation_asked", text, values)


# ---------------------------------------------------------------------------------- the waits


def _compare_waits(
    old: Mapping[str, admin_pb2.GroupMember], new: Mapping[str, admin_pb2.GroupMember]
) -> Iterator[Change]:
    """Waits that have begun, or are for other partitions now."""
    for member_id, member in new.items():
        known = old.get(member_id)
        waited = {} if known is None else {wait.owner_id: wait.partitions for wait in known.waits}
        for wait in member.waits:
            if list(waited.get(wait.owner_id, ())) != list(wait.partitions):
                values = {
                    "member_id": member_id,
                    "owner_id": wait.owner_id,
                    "partitions": name_partitions(wait.partitions),
                }
                yield Change("wait_began", render_wait_for(member_id, wait), values)
