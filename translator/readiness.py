"""Whether a classic group can be upgraded to a consumer group, and what needs attention.

It follows Kafka's ``GroupMetadataManager.validateOnlineUpgrade`` and
``ConsumerGroup.fromClassicGroup``. The first consumer-protocol member converts the group with all
its members. It is refused with GROUP_ID_NOT_FOUND if the migration policy does not allow it, the
protocol type is not ``consumer``, the group has more members than a consumer group may have, a
member's embedded subscription or assignment cannot be decoded, or an assignment has user data,
which only the leader's assignor understands. The version of the embedded protocol is not checked.
An empty group is deleted and created again, whatever its protocol type was. Unlike Kafka, a member
that subscribes to too many topics also prevents the upgrade.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Protocol

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicMember
from coordinator.core.subscriptions.regex_matching import check_regex
from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.migration_policy import allows_upgrade
from model.errors import InvalidRegularExpression
from model.value import value
from muster.assignors.embedded import (
    PROTOCOL_TYPE,
    MalformedProtocolError,
    decode_assignment,
    decode_subscription,
    leaves_out_owned,
    peek_topic_count,
    peek_version,
)

UNLIMITED = (1 << 31) - 1
DEFAULT_SESSION_TIMEOUT_MS = 45_000
DEFAULT_SUBSCRIPTIONS_MAX = 10_000
FIRST_VERSION_WITH_RACK = 3
_FIRST_VERSION_WITH_OWNED = 1

_COOPERATIVE = "cooperative-sticky"
_EAGER = ("range", "roundrobin", "sticky")
_REGEX_MAX_BYTES = 1 << 15


class Verdict(Enum):
    """``BLOCKED``: the upgrade is refused. ``WARN``: it needs attention."""

    READY = "READY"
    WARN = "WARN"
    BLOCKED = "BLOCKED"


class Hindrance(Enum):
    """What prevents an upgrade or needs attention, the most severe first."""

    POLICY = "migration_policy"
    PROTOCOL_TYPE = "protocol_type"
    GROUP_SIZE = "group_size"
    SUBSCRIPTION_SIZE = "subscription_size"
    MALFORMED_SUBSCRIPTION = "malformed_subscription"
    MALFORMED_ASSIGNMENT = "malformed_assignment"
    ASSIGNMENT_USER_DATA = "assignment_user_data"
    PATTERN = "pattern"
    OTHER_TYPE = "other_type"
    OWNED_LEFT_OUT = "owned_left_out"
    EMBEDDED_VERSION = "embedded_version"
    CUSTOM_STRATEGY = "custom_strategy"
    EAGER_STRATEGY = "eager_strategy"
    SESSION_TIMEOUT = "session_timeout"
    STATIC_MEMBER = "static_member"


BLOCKING = (
    Hindrance.POLICY,
    Hindrance.PROTOCOL_TYPE,
    Hindrance.GROUP_SIZE,
    Hindrance.SUBSCRIPTION_SIZE,
    Hindrance.MALFORMED_SUBSCRIPTION,
    Hindrance.MALFORMED_ASSIGNMENT,
    Hindrance.ASSIGNMENT_USER_DATA,
)


@value
class CandidateMember:
    """A member of a classic group, as input of the rules.

    ``subscription`` is its metadata for the protocol of the group. ``assignment`` is empty if the
    member has never received one.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@value
class Candidate:
    """A classic group, as input of the rules."""

    group_id: str
    protocol_type: str | None
    protocol_name: str | None
    members: tuple[CandidateMember, ...]


@value
class MigrationRules:
    """The limits and policies of the coordinator.

    ``patterns`` are the regular expressions that clients subscribe with, by client id: a classic
    member sends only the topics that it matched, so they are in no record. ``keeps_user_data``: the
    joining member has a client-side assignor, which understands the user data of assignments.
    """

    allows_upgrade: bool = True
    max_size: int = UNLIMITED
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    patterns: Mapping[str, str] | None = None
    keeps_user_data: bool = False
    subscriptions_max: int = DEFAULT_SUBSCRIPTIONS_MAX


@value
class Reason:
    """A hindrance, of one member or, with no ``member_id``, of the group."""

    hindrance: Hindrance
    detail: str
    member_id: str | None = None
    client_id: str | None = None

    @property
    def is_blocking(self) -> bool:
        """Whether the upgrade is refused for it."""
        return self.hindrance in BLOCKING


@value
class Readiness:
    """The verdict on a group, and its reasons."""

    group_id: str
    verdict: Verdict
    reasons: tuple[Reason, ...]

    def clients_to_change(self) -> tuple[str, ...]:
        """The client ids of the reasons, the most severe first."""
        named = [reason for reason in self.reasons if reason.client_id is not None]
        named.sort(key=lambda reason: list(Hindrance).index(reason.hindrance))
        return tuple(dict.fromkeys(str(reason.client_id) for reason in named))


def compute_candidate(group: ClassicGroup) -> Candidate:
    """A classic group as input of the rules."""
    members = tuple(compute_candidate_member(group, member) for member in group.members.values())
    return Candidate(group.group_id, group.protocol_type, group.protocol_name, members)


def compute_candidate_member(group: ClassicGroup, member: ClassicMember) -> CandidateMember:
    """A member of a classic group as input of the rules."""
    return CandidateMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.session_timeout_ms,
        subscription_of(group, member),
        member.assignment,
    )


def subscription_of(group: ClassicGroup, member: ClassicMember) -> bytes:
    """The member's metadata for the protocol of the group, or else for its first protocol.

    During its first rebalance a group has members but no protocol yet.
    """
    said = member.metadata_for(group.protocol_name) or member.metadata
    if said or not member.protocols:
        return said
    return member.protocols[0].metadata


def compute_migration_rules(settings: CoordinatorSettings) -> MigrationRules:
    """The rules for a group with these settings."""
    return MigrationRules(
        allows_upgrade(settings.group_consumer_migration_policy),
        settings.group_consumer_max_size,
        settings.group_consumer_session_timeout_ms,
        subscriptions_max=settings.group_subscriptions_max,
    )


def compute_migration_readiness(group: Candidate, rules: MigrationRules) -> Readiness:
    """Apply all rules to a group and its members."""
    reasons = compute_reasons_of_group(group, rules)
    for member in group.members:
        reasons += compute_member_reasons(group, member, rules)
    return Readiness(group.group_id, compute_verdict(reasons), tuple(reasons))


class Hindering(Protocol):
    """A reason of whichever way."""

    @property
    def is_blocking(self) -> bool:
        """Whether the way is refused for it."""


def compute_verdict(reasons: Collection[Hindering]) -> Verdict:
    """The verdict that these reasons add up to, for a group or one member."""
    if any(reason.is_blocking for reason in reasons):
        return Verdict.BLOCKED
    return Verdict.WARN if reasons else Verdict.READY


def compute_reasons_of_group(group: Candidate, rules: MigrationRules) -> list[Reason]:
    """The reasons of the group itself, which may be empty."""
    if group.members:
        return compute_group_reasons(group, rules)
    if group.protocol_type in (PROTOCOL_TYPE, None, ""):
        return []
    detail = f"its former members use the protocol type {group.protocol_type} and stay classic"
    return [Reason(Hindrance.OTHER_TYPE, detail)]


def compute_group_reasons(group: Candidate, rules: MigrationRules) -> list[Reason]:
    """The reasons of a group with members that can be found without decoding their metadata."""
    found: list[Reason] = []
    if not rules.allows_upgrade:
        detail = (
            "the migration policy (consumer.migration.policy of the group, or else "
            "group.consumer.migration.policy) does not allow an upgrade"
        )
        found.append(Reason(Hindrance.POLICY, detail))
    if group.protocol_type != PROTOCOL_TYPE:
        detail = f"the protocol type is {group.protocol_type or 'unknown'}, not consumer"
        found.append(Reason(Hindrance.PROTOCOL_TYPE, detail))
    if len(group.members) > rules.max_size:
        detail = (
            f"it has {len(group.members)} members; a consumer group may have at most "
            f"{rules.max_size}"
        )
        found.append(Reason(Hindrance.GROUP_SIZE, detail))
    name = group.protocol_name or ""
    if name in _EAGER:
        detail = f"{name} is eager: until all clients are migrated, members stop for each rebalance"
        found.append(Reason(Hindrance.EAGER_STRATEGY, detail))
    elif name != _COOPERATIVE:
        detail = f"a server-side assignor replaces {name or 'the unknown assignor'}"
        found.append(Reason(Hindrance.CUSTOM_STRATEGY, detail))
    return found


def compute_member_reasons(
    group: Candidate, member: CandidateMember, rules: MigrationRules
) -> list[Reason]:
    """The reasons of one member."""
    found: list[Reason] = []

    def add(hindrance: Hindrance, detail: str) -> None:
        found.append(Reason(hindrance, detail, member.member_id, member.client_id))

    if group.protocol_type == PROTOCOL_TYPE:
        for hindrance, detail in _check_embedded(member, rules):
            if hindrance is not Hindrance.ASSIGNMENT_USER_DATA or not rules.keeps_user_data:
                add(hindrance, detail)
    pattern = (rules.patterns or {}).get(member.client_id)
    if pattern is not None:
        try:
            check_regex(pattern, _REGEX_MAX_BYTES)
        except InvalidRegularExpression as error:
            add(Hindrance.PATTERN, f"its regular expression is not valid in RE2: {error}")
    if member.session_timeout_ms > rules.session_timeout_ms:
        detail = (
            f"session.timeout.ms {member.session_timeout_ms} has no effect with the consumer "
            f"protocol: the group's {rules.session_timeout_ms} applies"
        )
        add(Hindrance.SESSION_TIMEOUT, detail)
    if member.instance_id is not None:
        detail = (
            f"the static member {member.instance_id} keeps its partitions for at most "
            f"{rules.session_timeout_ms} ms while it is away"
        )
        add(Hindrance.STATIC_MEMBER, detail)
    return found


def describe_too_many_topics(member: CandidateMember, rules: MigrationRules) -> str:
    """Describe a subscription with too many topics, without decoding it; "" for any other."""
    topics = peek_topic_count(member.subscription)
    if topics <= rules.subscriptions_max:
        return ""
    return f"a member subscribes to {topics} topics, more than {rules.subscriptions_max}"


def _check_embedded(member: CandidateMember, rules: MigrationRules) -> list[tuple[Hindrance, str]]:
    found: list[tuple[Hindrance, str]] = []
    if detail := describe_too_many_topics(member, rules):
        return [(Hindrance.SUBSCRIPTION_SIZE, detail)]
    try:
        decode_subscription(member.subscription)
    except MalformedProtocolError as error:
        detail = f"its subscription cannot be read: {error}"
        found.append((Hindrance.MALFORMED_SUBSCRIPTION, detail))
    else:
        version = peek_version(member.subscription)
        if version == _FIRST_VERSION_WITH_OWNED and leaves_out_owned(member.subscription):
            detail = (
                "its client library writes version 1 without owned partitions (as kafka-go, "
                "platformatic and faust do): it counts as owning none when it joins; Kafka would "
                "refuse it"
            )
            found.append((Hindrance.OWNED_LEFT_OUT, detail))
        elif version < FIRST_VERSION_WITH_RACK:
            detail = (
                f"its subscription has version {version}: versions below {FIRST_VERSION_WITH_RACK} "
                "lack fields that the server uses"
            )
            found.append((Hindrance.EMBEDDED_VERSION, detail))
    if not member.assignment:
        return found
    try:
        assignment = decode_assignment(member.assignment)
    except MalformedProtocolError as error:
        detail = f"its assignment cannot be read: {error}"
        found.append((Hindrance.MALFORMED_ASSIGNMENT, detail))
    else:
        if assignment.user_data:
            detail = "its assignment has user data of an assignor, which would be lost"
            found.append((Hindrance.ASSIGNMENT_USER_DATA, detail))
    return found
