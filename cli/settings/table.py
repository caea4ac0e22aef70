"""The table of settings: every name that a flag, a variable or a file may use, and its default."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from cli.settings.kafka_names import is_kafka_name
from cli.settings.room_fields import of_room
from cli.settings.setting import LONG_MAX, Address, Kind, Scope, Setting
from cli.settings.table_doors import GRPC_SETTINGS, KAFKA_SETTINGS, TOPIC_SETTINGS
from cli.settings.table_groups import GROUP_SETTINGS

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
    *GROUP_SETTINGS,
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
