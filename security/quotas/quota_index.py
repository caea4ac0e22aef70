"""Which quotas are in force for a client or an address, with Kafka's precedence.

A client's quota is that of the first entity that has one of this name: its user and client id, its
user, its client id, each by name and then by default, as in Kafka's ``DefaultQuotaCallback``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from model.access.quotas import (
    CONNECTION_RATE,
    DEFAULT_NAME,
    GROUPS_MAX,
    MEMBERS_MAX,
    METERED_KEYS,
    QuotaEntity,
)

_LOOKED_AT: Final = frozenset({*METERED_KEYS, GROUPS_MAX, MEMBERS_MAX})
"""The quotas that are looked at for each request."""


class Limit(NamedTuple):
    """A quota, and who uses it up together: everybody of a user, or of a client id, …"""

    value: float
    who: QuotaEntity


class QuotaIndex:
    """The quotas of a server by entity. Only replay changes them.

    ``version`` grows with each change.
    """

    __slots__ = ("_by_entity", "_is_looked_at", "version")

    def __init__(self) -> None:
        self._by_entity: dict[QuotaEntity, Mapping[str, float]] = {}
        self._is_looked_at = 0
        self.version = 0

    def __len__(self) -> int:
        return len(self._by_entity)

    def __iter__(self) -> Iterator[tuple[QuotaEntity, Mapping[str, float]]]:
        yield from self._by_entity.items()

    @property
    def is_looked_at(self) -> bool:
        """Whether any quota is one that requests are looked at for."""
        return self._is_looked_at > 0

    def find(self, entity: QuotaEntity) -> Mapping[str, float]:
        """The quotas of exactly this entity."""
        return self._by_entity.get(entity, {})

    def put(self, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
        """Replace the quotas of an entity."""
        self.discard(entity)
        self._by_entity[entity] = quotas
        self._is_looked_at += not _LOOKED_AT.isdisjoint(quotas)

    def discard(self, entity: QuotaEntity) -> None:
        """Remove the quotas of an entity, if it has any."""
        former = self._by_entity.pop(entity, {})
        self._is_looked_at -= not _LOOKED_AT.isdisjoint(former)
        self.version += 1

    def find_of_client(self, user: str, client_id: str) -> dict[str, Limit]:
        """The quotas in force for a client."""
        found: dict[str, Limit] = {}
        for entity, who in _rank(user, client_id):
            for key, value in self._by_entity.get(entity, {}).items():
                if key not in found:
                    found[key] = Limit(value, who)
        return found

    def find_of_address(self, address: str, network: str) -> dict[str, Limit]:
        """The quotas in force for an address; by default it shares those of its network."""
        if not self._by_entity:
            return {}
        found = {
            key: Limit(value, QuotaEntity(ip=network))
            for key, value in self._by_entity.get(QuotaEntity(ip=DEFAULT_NAME), {}).items()
        }
        for key, value in self._by_entity.get(QuotaEntity(ip=address), {}).items():
            found[key] = Limit(value, QuotaEntity(ip=address))
        return found

    def find_connection_rate(self, address: str, network: str) -> Limit | None:
        """How many connections a second the address may make."""
        return self.find_of_address(address, network).get(CONNECTION_RATE)


def _rank(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, QuotaEntity]]:
    """The entities that a client belongs to, the first that decides first; and who shares each."""
    both = QuotaEntity(user, client_id)
    yield both, both
    yield QuotaEntity(user, DEFAULT_NAME), both
    yield QuotaEntity(user), QuotaEntity(user)
    yield QuotaEntity(DEFAULT_NAME, client_id), both
    yield QuotaEntity(DEFAULT_NAME, DEFAULT_NAME), both
    yield QuotaEntity(DEFAULT_NAME), QuotaEntity(user)
    yield QuotaEntity(client_id=client_id), QuotaEntity(client_id=client_id)
    yield QuotaEntity(client_id=DEFAULT_NAME), QuotaEntity(client_id=client_id)
