"""Changes settings of a running Kafka broker, so that it stays warm."""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.waiting import wait_until

_INTERVAL = "group.consumer.assignment.interval.ms"
_FLUSH = "flush.messages"
_BROKER = "1"
_OFFSETS_TOPIC = "__consumer_offsets"
_ERRORS_ALONE = 3
_TIMEOUT_S = 10.0


def set_assignment_interval_ms(bootstrap: str, interval_ms: int) -> None:
    """Set the minimum time between two target assignments, and wait until the broker reports it.

    Raises ``NotInTime``.
    """
    _set(bootstrap, ResourceType.BROKER, _BROKER, _INTERVAL, str(interval_ms))


def set_fsync_of_commits(bootstrap: str, *, is_on: bool) -> None:
    """Set whether Kafka fsyncs group records before it answers; by default it does not.

    Raises ``NotInTime``.
    """
    value = "1" if is_on else str(2**63 - 1)
    _set(bootstrap, ResourceType.TOPIC, _OFFSETS_TOPIC, _FLUSH, value)


def _set(bootstrap: str, kind: ResourceType, resource: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _ERRORS_ALONE})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(kind, resource, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([asked]).values():
        altered.result(_TIMEOUT_S)
    wait_until(
        lambda: _read(admin, ConfigResource(kind, resource), name) == value,
        f"the broker takes {name}={value}",
        _TIMEOUT_S,
    )


def _read(admin: AdminClient, resource: ConfigResource, name: str) -> str:
    (described,) = admin.describe_configs([resource]).values()
    return str(described.result(_TIMEOUT_S)[name].value)
