"""Group configs: names, defaults and bounds.

Configs without a server setting here belong to group types that Muster stores but does not serve;
their values are stored as Kafka stores them. Source: Kafka 4.3's ``GroupConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.migration_policy import MIGRATION_POLICIES
from model.value import value

INT_MAX: Final = 2_147_483_647
_SERVER: Final = CoordinatorSettings()
"""A server with default settings."""


class ConfigType(Enum):
    """The type of a config's value; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LIST = 7


class Bound(NamedTuple):
    """A server setting that bounds a config, and the bound if the server does not set it."""

    setting: str
    default: int


@value
class GroupConfig:
    """One config of a group.

    ``setting`` is the server setting in force if the group has no value of its own, ``None`` if
    there is none. ``default`` is the value on a server with default settings. ``choices`` lists the
    valid values of a string; any other string must match ``pattern``, which ``form`` describes in
    error messages.
    """

    name: str
    config_type: ConfigType
    default: str
    documentation: str
    setting: str | None = None
    minimum: int = 0
    maximum: int = INT_MAX
    lower: Bound | None = None
    upper: Bound | None = None
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    form: str = ""


def _bounded(
    name: str, default: int, minimum: int, lowest: int, highest: int, documentation: str
) -> GroupConfig:
    """An integer config with Kafka's min and max settings as bounds."""
    kind, _, rest = name.partition(".")
    return GroupConfig(
        name,
        ConfigType.INT,
        str(default),
        documentation,
        setting=f"group.{name}",
        minimum=minimum,
        lower=Bound(f"group.{kind}.min.{rest}", lowest),
        upper=Bound(f"group.{kind}.max.{rest}", highest),
    )


def find_server_value(settings: CoordinatorSettings, setting: str) -> object | None:
    """The server's value of a setting; ``None`` if this server has no such setting."""
    return getattr(settings, compute_field_name(setting), None)


def compute_field_name(setting: str) -> str:
    """The field of ``CoordinatorSettings`` that holds a setting of the server."""
    return setting.replace(".", "_")


def _served(name: str, setting: str, documentation: str, **rest: Any) -> GroupConfig:
    """A config whose default is a server setting."""
    default = find_server_value(_SERVER, setting)
    if isinstance(default, tuple):
        kind, text = ConfigType.LIST, ",".join(default)
    else:
        kind = ConfigType.INT if isinstance(default, int) else ConfigType.STRING
        text = str(default)
    return GroupConfig(name, kind, text, documentation, setting, **rest)


def _served_and_bounded(name: str, minimum: int, documentation: str) -> GroupConfig:
    """An integer config whose default and bounds are server settings."""
    kind, _, rest = name.partition(".")
    setting, lower, upper = f"group.{name}", f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    default, lowest, highest = (
        find_server_value(_SERVER, each) for each in (setting, lower, upper)
    )
    assert isinstance(default, int)
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    return _bounded(name, default, minimum, lowest, highest, documentation)


SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"
ASSIGNORS: Final = "consumer.assignors"
LEAVE_GRACE: Final = "consumer.leave.grace.ms"
MAX_SIZE: Final = "consumer.max.size"
MIGRATION_POLICY: Final = "consumer.migration.policy"
OFFSETS_RETENTION: Final = "offsets.retention.minutes"
PINS: Final = "consumer.assignor.pins"
WEIGHTS: Final = "consumer.assignor.weights"
SKEW_LIMIT: Final = "consumer.assignor.skew.limit.percent"
MOVE_BUDGET: Final = "consumer.assignor.move.budget"
CO_PARTITION: Final = "consumer.assignor.copartition.enable"

_RESET_PATTERN: Final = (
    r"earliest|latest|by_duration:[pP](?=[\dtT])(\d+[dD])?"
    r"([tT](?=\d)(\d+[hH])?(\d+[mM])?(\d+([.,]\d{0,9})?[sS])?)?"
)
_RESET_FORM: Final = "must be 'earliest', 'latest' or 'by_duration:<PnDTnHnMn.nS>'"

_SESSION_TEXT = "How long a member is kept without a sign of life."
_HEARTBEAT_TEXT = "How often members are told to send a heartbeat."
_INTERVAL_TEXT = "The least time between two target assignments."

_KAFKA = (
    _served_and_bounded(SESSION_TIMEOUT, 1, _SESSION_TEXT),
    _served_and_bounded(HEARTBEAT_INTERVAL, 1, _HEARTBEAT_TEXT),
    _served_and_bounded(ASSIGNMENT_INTERVAL, 0, _INTERVAL_TEXT),
    _bounded("share.session.timeout.ms", 45_000, 1, 45_000, 60_000, _SESSION_TEXT),
    _bounded("share.heartbeat.interval.ms", 5_000, 1, 5_000, 15_000, _HEARTBEAT_TEXT),
    _bounded("share.assignment.interval.ms", 1_000, 0, 0, 15_000, _INTERVAL_TEXT),
    _bounded(
        "share.record.lock.duration.ms",
        30_000,
        1_000,
        15_000,
        60_000,
        "How long a record is locked for the member that has fetched it.",
    ),
    _bounded("share.delivery.count.limit", 5, 2, 2, 10, "How often a record is delivered at most."),
    _bounded(
        "share.partition.max.record.locks",
        2_000,
        100,
        100,
        4_000,
        "How many records of a partition are locked at most.",
    ),
    GroupConfig(
        "share.auto.offset.reset",
        ConfigType.STRING,
        "latest",
        "Where a share group begins to read.",
        pattern=_RESET_PATTERN,
        form=_RESET_FORM,
    ),
    GroupConfig(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        "Whether records of transactions that have not ended are read.",
        choices=("read_committed", "read_uncommitted"),
    ),
    GroupConfig(
        "share.renew.acknowledge.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether members may prolong the lock of a record.",
    ),
    _bounded("streams.session.timeout.ms", 45_000, 1, 45_000, 60_000, _SESSION_TEXT),
    _bounded("streams.heartbeat.interval.ms", 5_000, 1, 5_000, 15_000, _HEARTBEAT_TEXT),
    GroupConfig(
        "streams.num.standby.replicas",
        ConfigType.INT,
        "0",
        "How many standby replicas a task has.",
        setting="group.streams.num.standby.replicas",
        upper=Bound("group.streams.max.standby.replicas", 2),
    ),
    GroupConfig(
        "streams.initial.rebalance.delay.ms",
        ConfigType.INT,
        "3000",
        "How long the first target of a group waits for more members.",
        setting="group.streams.initial.rebalance.delay.ms",
    ),
    _bounded("streams.assignment.interval.ms", 1_000, 0, 0, 15_000, _INTERVAL_TEXT),
)

_OWN = (
    _served(
        ASSIGNORS,
        "group.consumer.assignors",
        "The assignors that members may ask for; the first is the default.",
    ),
    _served(
        LEAVE_GRACE,
        "group.consumer.leave.grace.ms",
        "How long the partitions of a member that left or expired are reserved for a new one with "
        "its client id and subscription. 0: not at all.",
    ),
    _served(MAX_SIZE, "group.consumer.max.size", "Members that the group may have.", minimum=1),
    _served(
        MIGRATION_POLICY,
        "group.consumer.migration.policy",
        "Whether the group is converted while its members work, and which way.",
        choices=MIGRATION_POLICIES,
    ),
    _served(
        OFFSETS_RETENTION,
        "offsets.retention.minutes",
        "How long the group's offsets are kept.",
        minimum=1,
    ),
    GroupConfig(
        PINS,
        ConfigType.LIST,
        "",
        "Partitions that are fixed to an instance while it is in the group: "
        "`TOPIC:PARTITION=INSTANCE`, `TOPIC:FIRST-LAST=INSTANCE` or `TOPIC=INSTANCE`.",
    ),
    GroupConfig(
        WEIGHTS,
        ConfigType.LIST,
        "",
        "The weight of partitions for `weighted`, 1 by default: "
        "`TOPIC:PARTITION=WEIGHT`, `TOPIC:FIRST-LAST=WEIGHT` or `TOPIC=WEIGHT`.",
    ),
    GroupConfig(
        SKEW_LIMIT,
        ConfigType.INT,
        "5",
        "By how much, in percent, a member's weight may exceed its fair share before "
        "`weighted` takes partitions from it.",
        maximum=100,
    ),
    GroupConfig(
        MOVE_BUDGET,
        ConfigType.INT,
        str(INT_MAX),
        "How many partitions may be revoked from live members in one epoch. The next epoch begins "
        "once the members have converged, until nothing is left to move.",
        minimum=1,
    ),
    GroupConfig(
        CO_PARTITION,
        ConfigType.BOOLEAN,
        "false",
        "Whether partitions with the same number, of topics with the same partition count and "
        "subscribers, are assigned to one member.",
    ),
)

GROUP_CONFIGS: Final[Mapping[str, GroupConfig]] = MappingProxyType(
    {config.name: config for config in (*_KAFKA, *_OWN)}
)
"""All group configs by name."""

KAFKA_CONFIGS: Final = frozenset(config.name for config in _KAFKA)
"""The configs that Kafka has too."""

SERVED_CONFIGS: Final = tuple(
    config
    for config in GROUP_CONFIGS.values()
    if config.setting is not None and find_server_value(_SERVER, config.setting) is not None
)
"""The configs whose default is a setting of this server, which the coordinator obeys."""

SESSION_RULES: Final = tuple(
    (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
    for kind in ("consumer", "share", "streams")
)
"""Pairs of configs of which the first must be greater than the second."""
