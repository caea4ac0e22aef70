"""The table of settings: every name that a flag, a variable or a file may use, and its default."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from cli.settings.kafka_names import is_kafka_name
from cli.settings.room_fields import of_room
from cli.settings.setting import LONG_MAX, Address, Kind, Scope, Setting
from cli.settings.table_doors import GRPC_SETTINGS, KAFKA_SETTINGS, TOPIC_SETTINGS
from model.configs.coordinator_settings import TRANSACTIONAL_COMMITS
from model.configs.migration_policy import MIGRATION_POLICIES
from muster.assignors.names import BUILT_IN_ASSIGNORS

_KAFKA_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"

_SERVER_SETTINGS = (
    Setting(
        "data.dir",
        Kind.STRING,
        "data",
        Scope.SERVER,
        "The folder that everything durable is kept in; made where it is missing. One process at "
        "a time has it.",
    ),
    Setting(
        "listen.kafka",
        Kind.ADDRESS,
        Address("127.0.0.1", 9092),
        Scope.SERVER,
        "Where the Kafka wire listens. Port 0 lets the system choose.",
    ),
    Setting(
        "listen.grpc",
        Kind.ADDRESS,
        Address("127.0.0.1", 50051),
        Scope.SERVER,
        "Where gRPC listens.",
    ),
    Setting(
        "listen.http",
        Kind.ADDRESS,
        Address("127.0.0.1", 8080),
        Scope.SERVER,
        "Where `/livez`, `/readyz`, `/metrics` and `/version` are served.",
    ),
    Setting(
        "advertised.kafka",
        Kind.ADDRESS,
        None,
        Scope.SERVER,
        "The address that Kafka clients are told to connect to; by default the one that they have "
        "connected to.",
    ),
    Setting(
        "allow.unauthenticated",
        Kind.BOOLEAN,
        False,
        Scope.SERVER,
        "Permits listening on other addresses than loopback although nobody is asked who they are.",
    ),
    Setting(
        "shutdown.timeout.ms",
        Kind.INT,
        10_000,
        Scope.SERVER,
        "How long SIGTERM waits for what is being answered before it closes connections.",
    ),
    Setting(
        "http.connections.max",
        Kind.INT,
        256,
        Scope.SERVER,
        "Connections to `listen.http` at a time.",
        minimum=1,
    ),
    Setting(
        "http.request.timeout.ms",
        Kind.INT,
        10_000,
        Scope.SERVER,
        "How long the head of a request over HTTP may take to arrive, and a connection to begin "
        "one.",
        minimum=1,
    ),
    Setting(
        "metrics.groups.max",
        Kind.INT,
        10_000,
        Scope.SERVER,
        "Groups that have series of their own in `/metrics`.",
    ),
    Setting(
        "log.format",
        Kind.STRING,
        "auto",
        Scope.SERVER,
        "Form of the messages on standard error: `json`, one object a line, or `text`; `auto` is "
        "text on a terminal.",
        choices=("auto", "json", "text"),
    ),
    Setting(
        "log.level",
        Kind.STRING,
        "info",
        Scope.SERVER,
        "The least level of the messages.",
        choices=("debug", "info", "warning", "error"),
    ),
)

_GROUP_SETTINGS = (
    of_room(
        "group.consumer.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "How long a member is kept without a sign of life.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.min.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "The least session timeout permitted.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.max.session.timeout.ms",
        Kind.INT,
        Scope.GROUP,
        "The greatest session timeout permitted.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.heartbeat.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "How often members are told to send a heartbeat.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.min.heartbeat.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The least heartbeat interval permitted.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.max.heartbeat.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The greatest heartbeat interval permitted.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "group.consumer.assignment.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The least time between two target assignments of a group. Kafka's default is 1000.",
        is_kafka=True,
    ),
    of_room(
        "group.consumer.min.assignment.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The least assignment interval permitted.",
        is_kafka=True,
    ),
    of_room(
        "group.consumer.max.assignment.interval.ms",
        Kind.INT,
        Scope.GROUP,
        "The greatest assignment interval permitted.",
        is_kafka=True,
    ),
    of_room(
        "group.consumer.max.size",
        Kind.INT,
        Scope.GROUP,
        "Members that a group may have.",
        minimum=1,
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
        "Members that a classic group may have.",
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
        minimum=1,
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

_LOG_SETTINGS = (
    Setting(
        "offsets.topic.num.partitions",
        Kind.INT,
        50,
        Scope.LOG,
        "Partitions of the log of groups and offsets. Fixed when the data folder is made.",
        minimum=1,
        maximum=65_535,
        is_kafka=True,
    ),
    of_room(
        "log.min.free.bytes",
        Kind.LONG,
        Scope.LOG,
        "Below this much free space commands that would write are refused; heartbeats and reads "
        "go on.",
        maximum=LONG_MAX,
    ),
    Setting(
        "log.reserve.bytes",
        Kind.LONG,
        64 * 1024 * 1024,
        Scope.LOG,
        "Size of a file that keeps room on the disk back, and is given up when the disk is full. "
        "0: none.",
        maximum=LONG_MAX,
    ),
    of_room(
        "flush.records.max",
        Kind.INT,
        Scope.LOG,
        "Records that one write to the store takes, as far as commands can be told apart.",
        minimum=1,
    ),
    of_room(
        "log.history.ms",
        Kind.LONG,
        Scope.LOG,
        "How long the log is kept whole; of what is older only what the state is made of stays. "
        "It counts from when a batch was appended here.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    of_room(
        "log.history.bytes",
        Kind.LONG,
        Scope.LOG,
        "How much of the log is kept whole, all partitions together; the oldest goes first.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    of_room(
        "log.history.check.interval.ms",
        Kind.INT,
        Scope.LOG,
        "How often the log is looked at for what is too old or too much.",
        minimum=1,
    ),
)

_ALL = (
    *_SERVER_SETTINGS,
    *_GROUP_SETTINGS,
    *_LOG_SETTINGS,
    *TOPIC_SETTINGS,
    *KAFKA_SETTINGS,
    *GRPC_SETTINGS,
)

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in _ALL})
"""Every setting by its name, in the order of docs/settings.md."""


def compute_suggestion(name: str) -> str | None:
    """The setting whose name is most like one that does not exist; ``None`` where none is."""
    close = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.7)
    return close[0] if close else None


def has_no_meaning_here(name: str) -> bool:
    """Whether it is a setting of Kafka's broker that Muster has no use for."""
    return name not in SETTINGS and is_kafka_name(name)
