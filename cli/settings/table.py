"""The table of settings: every name that a flag, a variable or a file may set, and its default."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from cli.settings.kafka_names import is_kafka_name
from cli.settings.listeners.listener_tls import PREFIX, compute_prefix_name
from cli.settings.setting import LONG_MAX, Kind, Scope, Setting
from cli.settings.setting_fields import of_field
from cli.settings.tables.console_table import CONSOLE_SETTINGS
from cli.settings.tables.groups_table import GROUP_SETTINGS
from cli.settings.tables.listeners_table import GRPC_SETTINGS, KAFKA_SETTINGS, TOPIC_SETTINGS
from cli.settings.tables.metrics_table import METRICS_SETTINGS
from cli.settings.tables.sasl_table import SASL_SETTINGS
from cli.settings.tables.security_table import SECURITY_SETTINGS
from cli.settings.tables.tls_table import TLS_SETTINGS
from cli.settings.tables.traces_table import TRACES_SETTINGS
from cli.settings.tables.upstream_table import UPSTREAM_SETTINGS
from security.endpoints import Endpoint, SecurityProtocol

_SERVER_SETTINGS = (
    Setting(
        "data.dir",
        Kind.STRING,
        "data",
        Scope.SERVER,
        "Folder of all durable data; created if it is missing. Only one process can open it at a "
        "time.",
    ),
    Setting(
        "listen.kafka",
        Kind.LIST,
        ("127.0.0.1:9092",),
        Scope.SERVER,
        "The Kafka listeners: `HOST:PORT`, `SASL_SSL://HOST:PORT` or "
        "`NAME:PROTOCOL://HOST:PORT`, separated by commas. The protocol is PLAINTEXT, SSL, "
        "SASL_PLAINTEXT or SASL_SSL; each name may occur once. With port 0 the system chooses a "
        "free port. See [security](security.md).",
    ),
    Setting(
        "listen.grpc",
        Kind.LISTENER,
        Endpoint("GRPC", SecurityProtocol.PLAINTEXT, "127.0.0.1", 50051),
        Scope.SERVER,
        "The gRPC listener: `HOST:PORT`, `SSL://HOST:PORT`, or `SASL_SSL://HOST:PORT` for "
        "clients that show a token or a password. `listener.name.grpc.` before a setting of TLS or "
        "SASL sets it for this listener alone. See [security](security.md).",
        choices=tuple(protocol.value for protocol in SecurityProtocol),
    ),
    Setting(
        "listen.http",
        Kind.LISTENER,
        Endpoint("HTTP", SecurityProtocol.PLAINTEXT, "127.0.0.1", 8080),
        Scope.SERVER,
        "Where the console, `/livez`, `/readyz`, `/metrics` and `/version` are served: "
        "`HOST:PORT` or `SSL://HOST:PORT`, with `listener.name.http.` before settings of TLS for "
        "this listener alone.",
        choices=(SecurityProtocol.PLAINTEXT.value, SecurityProtocol.SSL.value),
    ),
    Setting(
        "advertised.kafka",
        Kind.LIST,
        None,
        Scope.SERVER,
        "Address that Metadata and FindCoordinator return to Kafka clients: `HOST:PORT`, or "
        "`NAME://HOST:PORT` for each of several listeners. By default, the address that the client "
        "connected to.",
    ),
    Setting(
        "listeners",
        Kind.LIST,
        None,
        Scope.SERVER,
        "Kafka's name of `listen.kafka`, which decides if both are set.",
        is_kafka=True,
    ),
    Setting(
        "advertised.listeners",
        Kind.LIST,
        None,
        Scope.SERVER,
        "Kafka's name of `advertised.kafka`, which decides if both are set.",
        is_kafka=True,
    ),
    Setting(
        "listener.security.protocol.map",
        Kind.LIST,
        None,
        Scope.SERVER,
        "The protocols of listeners that are written as `NAME://HOST:PORT`: `NAME:PROTOCOL`, "
        "separated by commas. A protocol's own name stands for it.",
        is_kafka=True,
    ),
    Setting(
        "controller.listener.names",
        Kind.LIST,
        None,
        Scope.SERVER,
        "Listeners of `listeners` that are left out, with a warning, because there are no "
        "controllers here. By default CONTROLLER.",
        is_kafka=True,
    ),
    Setting(
        "allow.unauthenticated",
        Kind.BOOLEAN,
        False,
        Scope.SERVER,
        "Allows a listener on an address other than loopback even though its clients do not "
        "authenticate.",
    ),
    Setting(
        "shutdown.timeout.ms",
        Kind.INT,
        10_000,
        Scope.SERVER,
        "How long the server waits for requests in flight after SIGTERM before it closes their "
        "connections.",
    ),
    Setting(
        "http.connections.max",
        Kind.INT,
        256,
        Scope.SERVER,
        "The maximum number of open connections to `listen.http`.",
        minimum=1,
    ),
    Setting(
        "http.request.timeout.ms",
        Kind.INT,
        10_000,
        Scope.SERVER,
        "How long the head of an HTTP request may take to arrive; for the first request counted "
        "from the connection.",
        minimum=1,
    ),
    *METRICS_SETTINGS,
    *TRACES_SETTINGS,
    Setting(
        "log.format",
        Kind.STRING,
        "auto",
        Scope.SERVER,
        "Format of log messages on standard error: `json` (one object per line) or `text`. `auto` "
        "is text on a terminal and JSON elsewhere.",
        choices=("auto", "json", "text"),
    ),
    Setting(
        "log.level",
        Kind.STRING,
        "info",
        Scope.SERVER,
        "The lowest level of messages that are logged.",
        choices=("debug", "info", "warning", "error"),
    ),
)


_LOG_SETTINGS = (
    Setting(
        "offsets.topic.num.partitions",
        Kind.INT,
        50,
        Scope.LOG,
        "Number of partitions of the log of groups and offsets. Fixed when the data folder is "
        "created.",
        minimum=1,
        maximum=65_535,
        is_kafka=True,
    ),
    of_field(
        "log.min.free.bytes",
        Kind.LONG,
        Scope.LOG,
        "With less free disk space than this the server refuses commands that write; heartbeats "
        "and reads continue.",
        maximum=LONG_MAX,
    ),
    Setting(
        "log.reserve.bytes",
        Kind.LONG,
        64 * 1024 * 1024,
        Scope.LOG,
        "Size of a file that reserves disk space; the server deletes it when the disk is full. 0 "
        "for no file.",
        maximum=LONG_MAX,
    ),
    of_field(
        "flush.records.max",
        Kind.INT,
        Scope.LOG,
        "The maximum number of records in one write to the store. The records of one command are "
        "never split.",
        minimum=1,
    ),
    of_field(
        "log.checkpoint.interval.ms",
        Kind.INT,
        Scope.LOG,
        "How long a change may be in the log alone before a checkpoint writes it to the current "
        "state on disk. A start replays what follows the last checkpoint.",
        minimum=1,
    ),
    of_field(
        "log.checkpoint.bytes",
        Kind.LONG,
        Scope.LOG,
        "The number of bytes written to the log after which a checkpoint begins earlier.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    of_field(
        "log.checkpoint.keys",
        Kind.INT,
        Scope.LOG,
        "The number of changed record keys after which a checkpoint begins earlier. They are held "
        "in memory, in some 300 bytes each.",
        minimum=1,
        maximum=20_000,
    ),
    of_field(
        "log.history.ms",
        Kind.LONG,
        Scope.LOG,
        "How long the complete log is retained, counted from when each batch was appended to this "
        "store. Older parts are compacted to the current state.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    of_field(
        "log.history.bytes",
        Kind.LONG,
        Scope.LOG,
        "The maximum size of the complete log, over all partitions. The oldest part is compacted "
        "first.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    of_field(
        "log.history.check.interval.ms",
        Kind.INT,
        Scope.LOG,
        "How often the server checks the log for parts that are too old or too large.",
        minimum=1,
    ),
)

_ALL = (
    *_SERVER_SETTINGS,
    *GROUP_SETTINGS,
    *_LOG_SETTINGS,
    *TOPIC_SETTINGS,
    *KAFKA_SETTINGS,
    *TLS_SETTINGS,
    *GRPC_SETTINGS,
    *CONSOLE_SETTINGS,
    *SECURITY_SETTINGS,
    *SASL_SETTINGS,
    *UPSTREAM_SETTINGS,
)

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in _ALL})
"""Every setting by name, in the order of docs/settings.md."""


def find_setting(name: str) -> Setting | None:
    """The setting of this name; with ``listener.name.NAME.`` before it, of one listener alone."""
    known = SETTINGS.get(name)
    if known is not None or not name.startswith(PREFIX):
        return known
    rest = name.removeprefix(PREFIX)
    for end in (number for number, letter in enumerate(rest) if letter == "."):
        setting = SETTINGS.get(rest[end + 1 :])
        if end and setting is not None and setting.is_per_listener:
            listener = compute_prefix_name(rest[:end])
            return replace(setting, name=f"{PREFIX}{listener}.{setting.name}")
    return None


def compute_suggestion(name: str) -> str | None:
    """The setting whose name is most similar to an unknown name, or ``None``."""
    close = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.7)
    return close[0] if close else None


def has_no_meaning_here(name: str) -> bool:
    """Whether ``name`` is a Kafka broker setting that has no effect in Muster."""
    return name not in SETTINGS and is_kafka_name(name)
