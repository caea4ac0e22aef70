"""The online migration policy: between which protocols live groups are converted."""

from __future__ import annotations

from typing import Final

DISABLED: Final = "disabled"
UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"
BIDIRECTIONAL: Final = "bidirectional"

MIGRATION_POLICIES: Final = (BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED)
"""The values of ``group.consumer.migration.policy`` (Kafka's ``ConsumerGroupMigrationPolicy``)."""


def allows_upgrade(policy: str) -> bool:
    """Whether a classic group is upgraded when a member of the consumer protocol joins it."""
    return policy in (UPGRADE, BIDIRECTIONAL)


def allows_downgrade(policy: str) -> bool:
    """Whether a consumer group is downgraded once only classic members are left."""
    return policy in (DOWNGRADE, BIDIRECTIONAL)
