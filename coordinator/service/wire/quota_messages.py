"""Client quotas as ``muster.v1`` messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator.service.wire.error_statuses import InvalidField
from model.access.quotas import (
    CLIENT_ID,
    DEFAULT_NAME,
    ENTITY_TYPES,
    IP,
    USER,
    QuotaAlteration,
    QuotaChange,
    QuotaEntity,
    QuotaFilter,
    QuotaFilterPart,
)
from muster.v1 import quota_pb2

TEXT_MAX: Final = 32_767
"""Characters of a name or a key: what a string of Kafka's protocol may hold."""
_FIELDS: Final = {USER: "user", CLIENT_ID: "client_id", IP: "ip"}


def decode_alteration(request: quota_pb2.AlterQuotasRequest) -> QuotaAlteration:
    """Decode the change of an entity; raises ``InvalidField`` for what is too long."""
    names = _decode_names(request.entity)
    entity = tuple((kind, None if name == DEFAULT_NAME else name) for kind, name in names.items())
    changes = []
    for number, change in enumerate(request.changes):
        _check_length(change.key, f"changes[{number}].key")
        changes.append(QuotaChange(change.key, change.value if change.HasField("value") else None))
    return QuotaAlteration(entity, tuple(changes))


def decode_filter(message: quota_pb2.QuotaEntity) -> QuotaFilter:
    """The entities that have these names; raises ``InvalidField`` for what is too long."""
    names = _decode_names(message)
    return QuotaFilter(tuple(QuotaFilterPart(kind, name) for kind, name in names.items()))


def encode_quotas(entity: QuotaEntity, quotas: Mapping[str, float]) -> quota_pb2.EntityQuotas:
    """Encode the quotas of an entity."""
    return quota_pb2.EntityQuotas(
        entity=quota_pb2.QuotaEntity(user=entity.user, client_id=entity.client_id, ip=entity.ip),
        quotas=[quota_pb2.Quota(key=key, value=value) for key, value in quotas.items()],
    )


def _decode_names(message: quota_pb2.QuotaEntity) -> dict[str, str]:
    names = {}
    for entity_type in ENTITY_TYPES:
        field = _FIELDS[entity_type]
        if message.HasField(field):
            names[entity_type] = getattr(message, field)
            _check_length(names[entity_type], f"entity.{field}")
    return names


def _check_length(text: str, path: str) -> None:
    if len(text) > TEXT_MAX:
        raise InvalidField(path, f"has more than {TEXT_MAX} characters")
