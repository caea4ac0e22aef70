"""The part of the table of settings for groups and offsets."""

from __future__ import annotations

from collections.abc import Iterator

from cli.settings.setting import Kind, Scope, Setting
from cli.settings.setting_fields import of_field
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
        (config.lower.setting, f"The minimum {what}."),
        (config.upper.setting, f"The maximum {what}."),
    ):
        yield of_field(
            setting, Kind.INT, Scope.GROUP, text, minimum=config.minimum, is_kafka=is_kafka
        )


GROUP_SETTINGS = (
    *_bounded(
        SESSION_TIMEOUT,
        "session timeout",
        "How long a member may send no heartbeat before it is removed from the group.",
        is_kafka=True,
    ),
    *_bounded(
        HEARTBEAT_INTERVAL,
        "heartbeat interval",
        "The heartbeat interval that the server gives to members.",
        is_kafka=True,
    ),
    *_bounded(
        ASSIGNMENT_INTERVAL,
        "assignment interval",
        "The minimum time between two target assignments of a group. 0: by the group's size, in "
        "milliseconds (50 × members + partitions) / 30, at most 500 and none below 25. Kafka's "
        "default is 1000.",
        is_kafka=True,
    ),
    of_field(
        "group.consumer.leave.grace.ms",
        Kind.INT,
        Scope.GROUP,
        "How long the partitions of a member without an instance id that left or expired are "
        "reserved for a new member with its client id and subscription, which takes them over "
        "without a new group epoch. 0: not at all.",
        minimum=0,
    ),
    of_field(
        "group.consumer.max.size",
        Kind.INT,
        Scope.GROUP,
        "The maximum number of members in a consumer group.",
        minimum=GROUP_CONFIGS[MAX_SIZE].minimum,
        is_kafka=True,
    ),
    of_field(
        "group.consumer.migration.policy",
        Kind.STRING,
        Scope.GROUP,
        "Which groups are converted while they have members: `upgrade` converts a classic group "
        "when a member of the consumer protocol joins, `downgrade` converts a consumer group when "
        "only classic members are left, `bidirectional` does both and `disabled` neither. Empty "
        "groups are always converted.",
        choices=MIGRATION_POLICIES,
        is_kafka=True,
        aliases=tuple((policy.upper(), policy) for policy in MIGRATION_POLICIES),
    ),
    of_field(
        "group.coordinator.rebalance.protocols",
        Kind.LIST,
        Scope.GROUP,
        "The rebalance protocols that the server accepts. `classic` alone disables the consumer "
        "protocol: consumer groups are kept, listed and described, but their members are "
        "rejected.",
        choices=("classic", "consumer", "share", "streams"),
        is_kafka=True,
    ),
    of_field(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        Scope.GROUP,
        "How long the first rebalance of an empty classic group waits for more members.",
        is_kafka=True,
    ),
    of_field(
        "group.min.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "The minimum session timeout of a member of a classic group.",
        is_kafka=True,
    ),
    of_field(
        "group.max.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "The maximum session timeout of a member of a classic group.",
        is_kafka=True,
    ),
    of_field(
        "group.max.size",
        Kind.INT,
        Scope.GROUP,
        "The maximum number of members in a classic group. The end of a join phase and the "
        "conversion of a group handle all members in one iteration of the event loop, so a higher "
        "limit makes other clients wait longer.",
        minimum=1,
        is_kafka=True,
    ),
    of_field(
        "group.consumer.assignors",
        Kind.LIST,
        Scope.GROUP,
        "The server-side assignors that members may choose; the first is the default. Kafka's "
        "class names are accepted. Installed packages can add others: see docs/assignors.md.",
        choices=BUILT_IN_ASSIGNORS,
        entry_points="muster.assignors",
        is_kafka=True,
        aliases=(
            (f"{_KAFKA_ASSIGNORS}.UniformAssignor", "uniform"),
            (f"{_KAFKA_ASSIGNORS}.RangeAssignor", "range"),
        ),
    ),
    of_field(
        "assignor.inline.budget.ms",
        Kind.INT,
        Scope.GROUP,
        "Assignments that are expected to take longer than this are computed in a thread.",
    ),
    of_field(
        "assignor.time.limit.ms",
        Kind.INT,
        Scope.GROUP,
        "An assignment that takes longer than this is abandoned and the target assignment does "
        "not change. If a member was computing it (client-side assignor), the server computes it "
        "instead.",
        minimum=1,
    ),
    of_field(
        "group.id.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "The maximum length of a group id in UTF-8. The log's record format allows no more than "
        "the default.",
        minimum=1,
        maximum=32_767,
    ),
    of_field(
        "group.subscriptions.max",
        Kind.INT,
        Scope.GROUP,
        "The maximum number of topics that one member may subscribe to by name.",
        minimum=1,
    ),
    of_field(
        "group.member.metadata.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "The maximum size of the protocol names and metadata in one JoinGroup request.",
        minimum=1,
    ),
    of_field(
        "group.metadata.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "The maximum size of the protocol names and metadata of all members of a classic group. A "
        "JoinGroup that exceeds it fails with GROUP_MAX_SIZE_REACHED.",
        minimum=1,
    ),
    of_field(
        "group.regex.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "The maximum length of a regular expression in a subscription, in UTF-8.",
        minimum=1,
        maximum=32_767,
    ),
    of_field(
        "group.consumer.regex.refresh.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "How often the regular expressions of a group are resolved again without another reason, "
        "because the rights of members may have changed.",
        minimum=10_000,
        is_kafka=True,
    ),
    of_field(
        "group.consumer.regex.batch.refresh.min.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The minimum time between two resolutions of a group's regular expressions. Kafka has 10 "
        "s, fixed.",
    ),
    of_field(
        "offset.metadata.max.bytes",
        Kind.INT,
        Scope.GROUP,
        "The maximum length of the metadata of one committed offset.",
        is_kafka=True,
    ),
    of_field(
        "offsets.retention.minutes",
        Kind.INT,
        Scope.GROUP,
        "How long a committed offset is retained. In a consumer group, and in a group that only "
        "commits offsets, it counts from the commit, and an offset is not deleted while a member "
        "subscribes to its topic. In a classic group it counts from when the group became empty.",
        minimum=GROUP_CONFIGS[OFFSETS_RETENTION].minimum,
        is_kafka=True,
    ),
    of_field(
        "offsets.retention.check.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "How often the server deletes expired offsets, and empty groups without offsets.",
        minimum=1,
        is_kafka=True,
    ),
    of_field(
        "offsets.expiry",
        Kind.STRING,
        Scope.GROUP,
        "`off` keeps all offsets and all empty groups, for example during disaster recovery.",
        choices=("on", "off"),
    ),
    of_field(
        "offsets.transactional.commits",
        Kind.STRING,
        Scope.GROUP,
        "Who may commit offsets in a transaction. Another cluster coordinates the transaction, so "
        "the server cannot verify it. `members`: as for a plain commit, only members while the "
        "group has any. `all`: also a producer that names no member, as in Kafka. `none`: nobody.",
        choices=TRANSACTIONAL_COMMITS,
    ),
    of_field(
        "transaction.max.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "How long the pending offsets of a transaction wait for its end, counted from the first "
        "of them. Then the server aborts the transaction and fences its producer. Must not be "
        "less than in the cluster that coordinates the transactions. After a restart the wait is "
        "at least one minute.",
        minimum=1,
        is_kafka=True,
    ),
)
