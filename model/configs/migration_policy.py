"""Which conversions between the two protocols a coordinator makes while members work."""

from __future__ import annotations

from typing import Final

DISABLED: Final = "disabled"
UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"
BIDIRECTIONAL: Final = "bidirectional"

MIGRATION_POLICIES: Final = (BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED)
"""The values of ``group.consumer.migration.policy`` (Kafka's ``ConsumerGroupMigrationPolicy``)."""


def allows_upgrade(policy: str) -> bool:
    """Whether a classic group becomes a consumer group when a member of one joins it."""
    return policy in (UPGRADE, BIDIRECTIONAL)


def allows_downgrade(policy: str) -> bool:
    """Whether a consumer group becomes a classic group when only classic members are left."""
    return policy in (DOWNGRADE, BIDIRECTIONAL)
