"""Client quotas: limits of users, client ids and addresses (``org.apache.kafka.common.quota``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

DEFAULT_NAME: Final = ""
"""As a name of an entity: all that have no quota of their own. No name is empty."""


class QuotaEntity(NamedTuple):
    """Whom quotas are about; ``None`` for a type that is not part of it."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


class QuotaType(Enum):
    """The numbers that a quota may have."""

    DOUBLE = "a DOUBLE"
    INT = "an INT"
    LONG = "a LONG"


REQUEST_PERCENTAGE: Final = "request_percentage"
CONNECTION_RATE: Final = "connection_creation_rate"
REQUEST_RATE: Final = "request_rate"
COMMIT_RATE: Final = "commit_rate"
JOIN_RATE: Final = "join_rate"
GROUPS_MAX: Final = "groups_max"
MEMBERS_MAX: Final = "members_max"

_RATES: Final = {
    REQUEST_RATE: QuotaType.DOUBLE,
    COMMIT_RATE: QuotaType.DOUBLE,
    JOIN_RATE: QuotaType.DOUBLE,
}
CLIENT_KEYS: Final[Mapping[str, QuotaType]] = {
    "producer_byte_rate": QuotaType.LONG,
    "consumer_byte_rate": QuotaType.LONG,
    REQUEST_PERCENTAGE: QuotaType.DOUBLE,
    "controller_mutation_rate": QuotaType.DOUBLE,
    **_RATES,
}
"""The quotas of clients and of users; Kafka's first."""
USER_KEYS: Final[Mapping[str, QuotaType]] = {
    **CLIENT_KEYS,
    GROUPS_MAX: QuotaType.INT,
    MEMBERS_MAX: QuotaType.INT,
}
"""The quotas of users: they alone have groups and members."""
IP_KEYS: Final[Mapping[str, QuotaType]] = {CONNECTION_RATE: QuotaType.INT, **_RATES}
"""The quotas of addresses."""

METERED_KEYS: Final = (REQUEST_RATE, COMMIT_RATE, JOIN_RATE, REQUEST_PERCENTAGE)
"""The quotas of rates, by which requests are throttled."""


class QuotaChange(NamedTuple):
    """A new value of one quota of an entity; ``None`` removes it."""

    key: str
    value: float | None


class QuotaAlteration(NamedTuple):
    """All changes of one entity, as ``(type, name)`` pairs; the name ``None`` is the default."""

    entity: tuple[tuple[str, str | None], ...]
    changes: tuple[QuotaChange, ...]


class QuotaFilterPart(NamedTuple):
    """What an entity must have of one type: this name, or any with ``name`` ``None``."""

    entity_type: str
    name: str | None


class QuotaFilter(NamedTuple):
    """What entities must have; ``is_strict``: and nothing else (Kafka's ``ClientQuotaFilter``)."""

    parts: tuple[QuotaFilterPart, ...] = ()
    is_strict: bool = False

    def means(self, entity: QuotaEntity) -> bool:
        """Whether the entity is one of those."""
        names = name_parts(entity)
        if self.is_strict and len(names) != len(self.parts):
            return False
        return all(
            part.entity_type in names and part.name in (None, names[part.entity_type])
            for part in self.parts
        )


USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)
"""The names of the entity types in Kafka's protocol."""


def name_parts(entity: QuotaEntity) -> dict[str, str]:
    """The names of an entity by Kafka's names of the types."""
    pairs = zip(ENTITY_TYPES, entity, strict=True)
    return {entity_type: name for entity_type, name in pairs if name is not None}
