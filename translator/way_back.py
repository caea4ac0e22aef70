"""The plan of a consumer group's way back: what is in the way, and what to set in each client.

A consumer group becomes a classic group when the last member of the consumer protocol leaves it
(``translator.downgrade``). Until then each client is restarted as a classic member, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from coordinator.core.client_assignors.selection import compute_selected_assignor
from coordinator.core.groups.group_description import CONSUMER
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.conversion import in_slices
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.migration_policy import allows_downgrade
from model.responses.migration import ClientChange, MigrationPlan, MigrationReason, PlannedMember
from translator.readiness import compute_verdict

_COOPERATIVE = "cooperative-sticky"
_RANGE = "range"
_COMPARABLE = ("uniform", _RANGE)
"""Assignors that a strategy of the clients does the same as."""


def compute_way_back(shard: Shard, group: ConsumerGroup) -> Steps[MigrationPlan]:
    """The plan, computed in slices: it has the members of the consumer protocol.

    It describes the group as of the first slice.
    """
    settings = shard.settings_of(group.group_id)
    assignor = compute_selected_assignor(shard, group)
    of_group = tuple(_compute_group_reasons(shard, group, assignor))
    members = list(group.members())
    state = group.state().value
    client_assignors = (
        {}
        if group.client_assignor_state is None
        else {
            member_id: named[0].name
            for member_id, named in group.client_assignor_state.assignors.items()
            if named
        }
    )
    strategy = yield from _compute_strategy(members, assignor)
    common = _compute_changes(settings, strategy)
    planned: list[PlannedMember] = []
    for part in in_slices(members):
        for member in part:
            if member.classic is None:
                own = tuple(_compute_reasons(member, client_assignors.get(member.member_id)))
                planned.append(_plan_member(member, of_group, own, common))
        yield
    every = [*of_group, *chain.from_iterable(member.reasons for member in planned)]
    return MigrationPlan(
        group.group_id,
        CONSUMER,
        state,
        PROTOCOL_TYPE,
        assignor,
        settings.group_consumer_migration_policy,
        compute_verdict(every).value,
        of_group,
        tuple(planned),
    )


def _compute_group_reasons(
    shard: Shard, group: ConsumerGroup, assignor: str
) -> Iterator[MigrationReason]:
    settings = shard.settings_of(group.group_id)
    if group.group_id in shard.freezes:
        detail = "it is frozen, and stays a consumer group until it is resumed"
        yield MigrationReason("frozen", detail, is_blocking=True)
    if group.member_count > settings.group_max_size:
        detail = (
            f"it has {group.member_count} members; a classic group may have at most "
            f"{settings.group_max_size}"
        )
        yield MigrationReason("group_size", detail, is_blocking=True)
    if not allows_downgrade(settings.group_consumer_migration_policy):
        detail = (
            "the migration policy does not make it a classic group by itself: muster migrate "
            "rollback sets consumer.migration.policy of the group to downgrade"
        )
        yield MigrationReason("migration_policy", detail, is_blocking=False)
    if group.member_count and assignor not in _COMPARABLE:
        detail = f"a strategy of the clients replaces the assignor {assignor}"
        yield MigrationReason("server_assignor", detail, is_blocking=False)


def _compute_reasons(member: Member, client_assignor: str | None) -> Iterator[MigrationReason]:
    metadata = member.metadata
    if metadata is not None and metadata.subscribed_topic_regex:
        detail = (
            "the server resolves its regular expression: a classic client has to resolve it "
            "itself, as java.util.regex.Pattern or the like"
        )
        yield MigrationReason("pattern", detail, is_blocking=False)
    if client_assignor is not None:
        detail = f"it brings the assignor {client_assignor}: it needs a strategy that does the same"
        yield MigrationReason("client_assignor", detail, is_blocking=False)


def _compute_strategy(members: list[Member], assignor: str) -> Steps[str]:
    """The strategy of most classic members, or else one that does what the assignor does."""
    votes: Counter[str] = Counter()
    for part in in_slices(members):
        for member in part:
            if member.classic is not None and member.classic.supported_protocols:
                votes[member.classic.supported_protocols[0].name] += 1
        yield
    if votes:
        return votes.most_common(1)[0][0]
    return _RANGE if assignor == _RANGE else _COOPERATIVE


def _compute_changes(settings: CoordinatorSettings, strategy: str) -> tuple[ClientChange, ...]:
    """The changes of a client's configuration: set a value, or remove it (``None``)."""
    session_ms = settings.group_consumer_session_timeout_ms
    least, most = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    bounded_ms = min(max(session_ms, least), most)
    heartbeat_ms = min(settings.group_consumer_heartbeat_interval_ms, bounded_ms // 3)
    return (
        ClientChange("group.protocol", "classic", "the client uses the classic protocol"),
        ClientChange("group.remote.assignor", None, "the clients compute the assignment"),
        ClientChange(
            "partition.assignment.strategy",
            strategy,
            "as it was before, if that is known: all clients need one in common",
        ),
        ClientChange(
            "session.timeout.ms", str(bounded_ms), f"up to now the group's {session_ms} applied"
        ),
        ClientChange(
            "heartbeat.interval.ms",
            str(heartbeat_ms),
            f"up to now the group's {settings.group_consumer_heartbeat_interval_ms} applied",
        ),
    )


def _plan_member(
    member: Member,
    of_group: tuple[MigrationReason, ...],
    own: tuple[MigrationReason, ...],
    common: tuple[ClientChange, ...],
) -> PlannedMember:
    metadata = member.metadata
    assert metadata is not None, "the group's members have said who they are"
    changes = common
    if metadata.instance_id is not None:
        reason = "unchanged: the classic member takes the place of this one"
        changes = (*common, ClientChange("group.instance.id", metadata.instance_id, reason))
    return PlannedMember(
        member.member_id,
        metadata.instance_id,
        metadata.client_id,
        compute_verdict(of_group + own).value,
        own,
        changes,
    )
