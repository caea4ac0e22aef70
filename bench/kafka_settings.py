"""Settings of a Kafka broker that are changed while it runs, so that it stays warm."""

from __future__ import annotations

import time

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

_NAME = "group.consumer.assignment.interval.ms"
_BROKER = "1"
_ERRORS_ALONE = 3
_TIMEOUT_S = 10.0
_POLL_S = 0.02


def set_assignment_interval_ms(bootstrap: str, interval_ms: int) -> None:
    """Set how often Kafka computes a target at most, and wait until the broker says so itself.

    Raises TimeoutError.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _ERRORS_ALONE})
    entry = ConfigEntry(_NAME, str(interval_ms), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, _BROKER, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(_TIMEOUT_S)
    deadline = time.monotonic() + _TIMEOUT_S
    while _read(admin) != str(interval_ms):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the broker does not take {_NAME}={interval_ms}")
        time.sleep(_POLL_S)


def _read(admin: AdminClient) -> str:
    resource = ConfigResource(ResourceType.BROKER, _BROKER)
    (described,) = admin.describe_configs([resource]).values()
    return str(described.result(_TIMEOUT_S)[_NAME].value)
