"""Settings of groups: their entries in the table of settings."""

from __future__ import annotations

from collections.abc import Iterator

from cli.settings.room_fields import of_room
from cli.settings.setting import Kind, Scope, Setting
from model.configs.coordinator_settings import TRANSACTIONAL_COMMITS
from model.configs.group_configs import (
    ASSIGNMENT_INTERVAL,
    GROUP_CONFIGS,
    HEARTBEAT_INTERVAL,
    MAX_SIZE,
    OFFSETS_RETENTION,
    SESSION_TIMEOUT,
)
from model.configs.migration_policy import MIGRATION_POLICIES
from muster.assignors.names import BUILT_IN_ASSIGNORS

_KAFKA_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"


def _bounded(name: str, what: str, doc: str, *, is_kafka: bool = False) -> Iterator[Setting]:
    """The default of a group config and its bounds: three settings, named by the config."""
    config = GROUP_CONFIGS[name]
    assert config.setting is not None
    assert config.lower is not None
    assert config.upper is not None
    for setting, text in (
        (config.setting, doc),
        (config.lower.setting, f"The least {what} permitted."),
        (config.upper.setting, f"The greatest {what} permitted."),
    ):
        yield of_room(
            setting, Kind.INT, Scope.GROUP, text, minimum=config.minimum, is_kafka=is_kafka
        )


GROUP_SETTINGS = (
    *_bounded(
        SESSION_TIMEOUT,
        "session timeout",
        "How long a member is kept without a sign of life.",
        is_kafka=True,
    ),
    *_bounded(
        HEARTBEAT_INTERVAL,
        "heartbeat interval",
        "How often members are told to send a heartbeat.",
        is_kafka=True,
    ),
    *_bounded(
        ASSIGNMENT_INTERVAL,
        "assignment interval",
        "The least time between two target assignments of a group. Kafka's default is 1000.",
        is_kafka=True,
    ),
    of_room(
        "group.consumer.max.size",
        Kind.INT,
        Scope.GROUP,
        "Members that a group may have.",
        minimum=GROUP_CONFIGS[MAX_SIZE].minimum,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.migration.policy",
        Kind.STRING,
        Scope.GROUP,
        "Which groups are converted while their members work: classic groups when a member of the "
        "consumer protocol joins (upgrade), consumer groups when only classic members are left "
        "(downgrade), both (bidirectional) or none (disabled). Empty groups always are.",
        choices=MIGRATION_POLICIES,
        is_kafka=True,
        aliases=tuple((policy.upper(), policy) for policy in MIGRATION_POLICIES),
    ),
    of_room(
        "group.coordinator.rebalance.protocols",
        Kind.LIST,
        Scope.GROUP,
        "The protocols that members may speak. `classic` alone switches the consumer protocol off: "
        "consumer groups are kept, listed and described, their members are refused.",
        choices=("classic", "consumer", "share", "streams"),
        is_kafka=True,
    ),
    of_room(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        Scope.GROUP,
        "How long an empty classic group waits for more members before its first rebalance.",
        is_kafka=True,
    ),
    of_room(
        "group.min.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "The least session timeout that a member of a classic group may have.",
        is_kafka=True,
    ),
    of_room(
        "group.max.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "The greatest session timeout that a member of a classic group may have.",
        is_kafka=True,
    ),
    of_room(
        "group.max.size",
        Kind.INT,
        Scope.GROUP,
        "Members that a classic group may have. The end of a join phase, and the conversion of a "
        "group, are one turn of the loop for all members: with more, other clients wait longer.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.assignors",
        Kind.LIST,
        Scope.GROUP,
        "The assignors that members may ask for; the first is the default. Kafka's class names "
        "are understood; others come from installed packages: see docs/assignors.md.",
        choices=BUILT_IN_ASSIGNORS,
        entry_points="muster.assignors",
        is_kafka=True,
        aliases=(
            (f"{_KAFKA_ASSIGNORS}.UniformAssignor", "uniform"),
            (f"{_KAFKA_ASSIGNORS}.RangeAssignor", "range"),
        ),
    ),
    of_room(
        "assignor.inline.budget.ms",
        Kind.INT,
        Scope.GROUP,
        "Assignments that are expected to take longer are computed in a thread.",
    ),
    of_room(
        "assignor.time.limit.ms",
        Kind.INT,
        Scope.GROUP,
        "An assignment that takes longer is given up, and the target stays as it was; where a "
        "member was to compute it, the server does.",
        minimum=1,
    ),
    of_room(
        "group.id.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "Length of a group id in UTF-8; the records of the log hold no more than the default.",
        minimum=1,
        maximum=32_767,
    ),
    of_room(
        "group.subscriptions.max",
        Kind.INT,
        Scope.GROUP,
        "Topics that one member may subscribe to by name.",
        minimum=1,
    ),
    of_room(
        "group.member.metadata.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "Names and metadata of all protocols that a member says in a JoinGroup.",
        minimum=1,
    ),
    of_room(
        "group.metadata.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "The same of all members of a classic group together: who says more finds the group full.",
        minimum=1,
    ),
    of_room(
        "group.regex.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "Length of a pattern that a member may subscribe with, in UTF-8.",
        minimum=1,
        maximum=32_767,
    ),
    of_room(
        "group.consumer.regex.refresh.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "How often the patterns of a group are resolved again where nothing asks for it: members' "
        "rights may have changed.",
        minimum=10_000,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.regex.batch.refresh.min.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The least time from one resolution of a group's patterns to the next; Kafka has 10 s, "
        "fixed.",
    ),
    of_room(
        "offset.metadata.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "Length of the metadata of one committed offset.",
        is_kafka=True,
    ),
    of_room(
        "offsets.retention.minutes",
        Kind.INT,
        Scope.GROUP,
        "How long an offset is kept: of a consumer group or a simple one since it was committed, "
        "unless a member subscribes to its topic; of a classic group since the group is empty.",
        minimum=GROUP_CONFIGS[OFFSETS_RETENTION].minimum,
        is_kafka=True,
    ),
    of_room(
        "offsets.retention.check.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "How often offsets past their retention are looked for, and groups that are empty and "
        "have no offsets left.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "offsets.expiry",
        Kind.STRING,
        Scope.GROUP,
        "`off` keeps all offsets and all empty groups, for a rescue.",
        choices=("on", "off"),
    ),
    of_room(
        "offsets.transactional.commits",
        Kind.STRING,
        Scope.GROUP,
        "Who may commit offsets in a transaction, which is coordinated elsewhere and cannot be "
        "verified here: as for any commit, in a group that has members they alone (`members`); "
        "also a producer that names no member, as in Kafka (`all`); nobody (`none`).",
        choices=TRANSACTIONAL_COMMITS,
    ),
    of_room(
        "transaction.max.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "How long offsets of a transaction wait for its end, from the first of them on; then it "
        "is aborted here, and its producer fenced. No less than that of the cluster that "
        "coordinates the transactions. After a start they wait a minute at least.",
        minimum=1,
        is_kafka=True,
    ),
)
