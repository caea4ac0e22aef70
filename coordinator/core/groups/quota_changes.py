"""Changes of client quotas, and the list of them (Kafka's ``ClientQuotaControlManager``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, assert_never

from coordinator.core.state.outcome import Outcome
from model.access.quotas import (
    CLIENT_ID,
    CLIENT_KEYS,
    DEFAULT_NAME,
    ENTITY_TYPES,
    IP,
    IP_KEYS,
    USER,
    USER_KEYS,
    QuotaAlteration,
    QuotaEntity,
    QuotaType,
)
from model.commands.command import QuotaCommand
from model.commands.quotas import (
    ALTERATIONS_PER_COMMAND_MAX,
    CHANGES_PER_ALTERATION_MAX,
    AlterQuotas,
    DescribeQuotas,
)
from model.errors import GroupError, InvalidRequest
from model.log.side_records import QuotaSideKey, QuotaSideValue, SideRecord
from model.responses.quotas import AlterQuotasResponse, DescribeQuotasResponse
from security.quotas.addresses import parse_address
from security.quotas.quota_index import QuotaIndex

ENTITIES_MAX: Final = 10_000
"""The most entities with quotas: a list of all is made in one turn."""
_WHOLE_TOLERANCE: Final = 1e-6
_LARGEST: Final = {QuotaType.INT: 2**31 - 1, QuotaType.LONG: 2**63 - 1}


def handle_quota_command(quotas: QuotaIndex, command: QuotaCommand) -> Outcome:
    """Handle a command about quotas."""
    match command:
        case AlterQuotas():
            return handle_alter_quotas(quotas, command)
        case DescribeQuotas():
            return Outcome(response=DescribeQuotasResponse(tuple(quotas)))
        case _:
            assert_never(command)


def handle_alter_quotas(quotas: QuotaIndex, command: AlterQuotas) -> Outcome:
    """Make the alterations that are valid; an entity's changes are made all or none."""
    if len(command.alterations) > ALTERATIONS_PER_COMMAND_MAX:
        most = ALTERATIONS_PER_COMMAND_MAX
        raise InvalidRequest(f"A command may have at most {most} alterations of quotas.")
    changed: dict[QuotaEntity, dict[str, float]] = {}
    added = 0
    errors: list[GroupError | None] = []
    for alteration in command.alterations:
        try:
            entity = compute_entity(alteration)
            former = changed.get(entity, quotas.find(entity))
            new = _change(entity, former, alteration)
            if new and not former:
                if len(quotas) + added >= ENTITIES_MAX:
                    raise InvalidRequest(
                        f"At most {ENTITIES_MAX} entities may have quotas: use defaults."
                    )
                added += 1
        except GroupError as error:
            errors.append(error)
            continue
        errors.append(None)
        changed[entity] = new
    side = tuple(
        SideRecord(
            QuotaSideKey(entity), QuotaSideValue(tuple(sorted(new.items()))) if new else None
        )
        for entity, new in changed.items()
        if new != quotas.find(entity)
    )
    response = AlterQuotasResponse(tuple(errors))
    return Outcome(side=() if command.validate_only else side, response=response)


def compute_entity(alteration: QuotaAlteration) -> QuotaEntity:
    """The entity of an alteration. Raises ``InvalidRequest`` as Kafka does."""
    names: dict[str, str] = {}
    if not alteration.entity:
        raise InvalidRequest("Invalid empty client quota entity")
    for entity_type, name in alteration.entity:
        if entity_type not in ENTITY_TYPES:
            raise InvalidRequest(f"Unhandled client quota entity type: {entity_type[:100]}")
        if name == DEFAULT_NAME:
            raise InvalidRequest(f"Empty {entity_type} not supported")
        names[entity_type] = DEFAULT_NAME if name is None else name
    if IP in names and len(names) > 1:
        raise InvalidRequest(
            "Invalid quota entity combination, IP entity should not be combined with User or "
            "ClientId"
        )
    if names.get(IP):
        try:
            names[IP] = parse_address(names[IP]).text
        except ValueError:
            raise InvalidRequest(f"{names[IP][:100]} is not a valid IP address.") from None
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))


def _change(
    entity: QuotaEntity, former: Mapping[str, float], alteration: QuotaAlteration
) -> dict[str, float]:
    if len(alteration.changes) > CHANGES_PER_ALTERATION_MAX:
        most = CHANGES_PER_ALTERATION_MAX
        raise InvalidRequest(f"At most {most} quotas of an entity may be changed at once.")
    new = dict(former)
    keys = _find_keys(entity)
    seen: set[str] = set()
    for key, value in alteration.changes:
        if key in seen:
            raise InvalidRequest(f"Duplicate quota key {key[:100]} not updating quota.")
        seen.add(key)
        if value is None:
            new.pop(key, None)
            continue
        _check_value(keys, key, value)
        new[key] = value
    return new


def _find_keys(entity: QuotaEntity) -> Mapping[str, QuotaType]:
    if entity.ip is not None:
        return IP_KEYS
    return USER_KEYS if entity.client_id is None else CLIENT_KEYS


def _check_value(keys: Mapping[str, QuotaType], key: str, value: float) -> None:
    quota_type = keys.get(key)
    if quota_type is None:
        raise InvalidRequest(f"Invalid configuration key {key[:100]}")
    if not value > 0:
        raise InvalidRequest(f"Quota {key} must be greater than 0")
    if quota_type is QuotaType.DOUBLE:
        if math.isinf(value):
            raise InvalidRequest(f"Quota {key} must be finite")
        return
    if value > _LARGEST[quota_type]:
        raise InvalidRequest(f"Proposed value for {key} is too large for {quota_type.value}.")
    if abs(value % 1.0) > _WHOLE_TOLERANCE:
        raise InvalidRequest(f"{key} cannot be a fractional value.")
