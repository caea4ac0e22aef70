"""Side records: durable state that Kafka's records have no fields for.

``storage.side_codec`` converts them to bytes and back.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from model.access.acls import Acl
from model.access.quotas import QuotaEntity
from model.access.scram import ScramCredential, ScramMechanism
from model.client_assignors import (
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.group_freeze import GroupFreeze
from model.group_resets import GroupReset
from model.ids import (
    GroupId,
    LogOffset,
    LogPartition,
    ProducerId,
    TopicId,
    TopicName,
)
from model.places import GroupPlace
from model.secret import HIDDEN
from model.value import value


@value
class TopicSideKey:
    """A topic of Muster's own catalogue."""

    topic: TopicName


@value
class TopicSideValue:
    """Its id, which a recreated topic does not inherit, and its partition count.

    ``racks`` are those of the replicas of each partition, as in ``Topic``.
    """

    topic_id: TopicId
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


@value
class TopicDeletionKey:
    """A deleted topic that may still have committed offsets."""

    topic_id: TopicId


@value
class TopicDeletionValue:
    """What tells the deleted topic's offsets from those of a new topic with the same name.

    ``deleted_at_ms`` is the wall time, 0 if unknown. ``log_ends`` are the next offsets of all log
    partitions at that time: later records belong to a later topic. They are empty if unknown (an
    entry of an earlier version); then the time decides.
    """

    topic: TopicName
    deleted_at_ms: int
    log_ends: tuple[LogOffset, ...] = ()


@value
class ProducerIdBlockKey:
    """The current block of producer ids."""


@value
class ProducerIdBlockValue:
    """Ids below ``next_producer_id`` may have been allocated; a restart goes on there."""

    next_producer_id: int


@value
class ImportGraceKey:
    """The last import of a Kafka log."""


@value
class ImportGraceValue:
    """No offset expires within the retention time after ``imported_at_ms`` (wall)."""

    imported_at_ms: int


OFFSETS_OF_A_MS: Final = 1 << 20


@value
class TokenStartKey:
    """The last start that gave fencing tokens."""


@value
class TokenStartValue:
    """Tokens of that start are of ``wall_ms`` or later; those of the next are not earlier.

    They are ``OFFSETS_OF_A_MS`` for each millisecond, and the offset in the log.
    """

    wall_ms: int


@value
class GroupConfigsSideKey:
    """The configs of a group."""

    group_id: GroupId


@value
class GroupConfigsSideValue:
    """Names and values, sorted by name.

    ``longest_session_timeout_ms`` was in force before, and members may still rely on it; 0 if it
    does not exceed the timeout in force.
    """

    configs: tuple[tuple[str, str], ...]
    longest_session_timeout_ms: int = 0


@value
class AclSideKey:
    """An ACL."""

    acl: Acl


@value
class AclSideValue:
    """It is in force."""


@value
class QuotaSideKey:
    """An entity with client quotas."""

    entity: QuotaEntity


@value
class QuotaSideValue:
    """Its quotas, sorted by name."""

    quotas: tuple[tuple[str, float], ...]


@value
class ScramCredentialKey:
    """The credential of a user for a mechanism; its value is a ``ScramCredential``."""

    user: str
    mechanism: ScramMechanism


@value
class FakeSaltSecretKey:
    """What the salts of unknown users are computed from."""


@value
class FakeSaltSecretValue:
    """Random bytes. Whoever knows them can tell which users exist."""

    secret: bytes

    def __repr__(self) -> str:
        return f"FakeSaltSecretValue({HIDDEN})"


@value
class ProducerStateKey:
    """A log partition's state of a transactional producer."""

    partition: LogPartition
    producer_id: ProducerId


@value
class ProducerStateValue:
    """The highest epochs in the producer's markers: the producer's and the coordinator's.

    Both are -1 before the first marker. ``last_timestamp`` is wall ms. ``transaction_since_ms`` is
    when the open transaction began in this partition (wall), -1 if none is open.
    """

    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_since_ms: int = -1


@value
class ProducerGroupKey:
    """A log partition's state of a transactional producer in one group."""

    partition: LogPartition
    producer_id: ProducerId
    group_id: GroupId


@value
class ProducerGroupValue:
    """The lowest epoch that the producer may still use in the group.

    ``timed_out_epoch`` is the epoch of offsets that were aborted because their transaction timed
    out, -1 if there are none. Both are reset by the producer's next marker.
    """

    producer_epoch: int
    timed_out_epoch: int = -1


@value
class GroupPlaceKey:
    """The place of a group of a log partition, which outlives the group; its value is a
    ``GroupPlace``."""

    partition: LogPartition
    group_id: GroupId


@value
class GroupResetKey:
    """The last reset of the offsets of a group with members; its value is a ``GroupReset``."""

    partition: LogPartition
    group_id: GroupId


@value
class GroupFreezeKey:
    """A group whose rebalancing is frozen; its value is a ``GroupFreeze``."""

    partition: LogPartition
    group_id: GroupId


ShardSideKey: TypeAlias = (
    ProducerStateKey
    | ProducerGroupKey
    | ClientAssignorsKey
    | InstalledMetadataKey
    | GroupPlaceKey
    | GroupResetKey
    | GroupFreezeKey
)
"""Keys of records that belong to one log partition; the others belong to the whole server."""

ShardSideValue: TypeAlias = (
    ProducerStateValue
    | ProducerGroupValue
    | ClientAssignorsValue
    | InstalledMetadataValue
    | GroupPlace
    | GroupReset
    | GroupFreeze
)
"""Values of these."""

SideKey: TypeAlias = (
    TopicSideKey
    | TopicDeletionKey
    | ProducerIdBlockKey
    | ImportGraceKey
    | TokenStartKey
    | GroupConfigsSideKey
    | AclSideKey
    | QuotaSideKey
    | ScramCredentialKey
    | FakeSaltSecretKey
    | ShardSideKey
)

SideValue: TypeAlias = (
    TopicSideValue
    | TopicDeletionValue
    | ProducerIdBlockValue
    | ImportGraceValue
    | TokenStartValue
    | GroupConfigsSideValue
    | AclSideValue
    | QuotaSideValue
    | ScramCredential
    | FakeSaltSecretValue
    | ShardSideValue
)


class SideRecord(NamedTuple):
    """A record of state beside Kafka's records, written in one batch with them."""

    key: SideKey
    value: SideValue | None
