"""AlterClientQuotas (49), versions 0 and 1: changes the quotas of entities, each on its own.

Needs ALTER_CONFIGS on the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, Final, TypeAlias

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import LongAnswer, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import Gather
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.access.quotas import QuotaAlteration, QuotaChange
from model.commands.quotas import (
    ALTERATIONS_PER_COMMAND_MAX,
    CHANGES_PER_ALTERATION_MAX,
    AlterQuotas,
)
from model.errors import ClusterAuthorizationFailed, ErrorCode, GroupError, InvalidRequest
from model.responses.quotas import AlterQuotasResponse

KEY = 49
wire = response_schema(KEY)

_SLICE: Final = 100
"""Entities decoded between two pauses."""
_PARTS_MAX: Final = 10
"""There are three types; what is named beyond this is not looked at."""
_Entity: TypeAlias = frozenset[tuple[str, str | None]]
"""Types and names."""


def handle(context: RequestContext, request: Any) -> None:
    """Alter the quotas; each entity has its own result."""
    if not context.authorized(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        refusal = ClusterAuthorizationFailed("Cluster authorization failed.")
        reply_in_slices(context, _refuse(context, request, refusal))
        return
    handle_in_slices(context, _alter(context, request))


def _refuse(context: RequestContext, request: Any, error: GroupError) -> Steps[Any]:
    """In slices: whoever may do nothing here may send many entities too."""
    errors: dict[_Entity, GroupError | None] = {}
    for entry, is_slice_done in pace(request.entries, _SLICE):
        errors[frozenset(_decode(entry).entity)] = error
        if is_slice_done:
            yield
    return (yield from _make_all(context, errors))


def _alter(context: RequestContext, request: Any) -> Steps[None]:
    found: dict[_Entity, QuotaAlteration] = {}
    errors: dict[_Entity, GroupError | None] = {}
    for entry, is_slice_done in pace(request.entries, _SLICE):
        alteration = _decode(entry)
        entity = frozenset(alteration.entity)
        if entity in errors:
            # As in Kafka, it has one result however often it is named.
            errors[entity] = InvalidRequest("An entity is named more than once.")
            found.pop(entity, None)
        else:
            errors[entity] = None
            found[entity] = alteration
        if is_slice_done:
            yield
    gather = Gather[None](context, lambda _: reply_in_slices(context, _make_all(context, errors)))
    left = iter(found.items())
    while taken := list(islice(left, ALTERATIONS_PER_COMMAND_MAX)):
        entities, alterations = zip(*taken, strict=True)
        command = AlterQuotas(context.caller, alterations, request.validate_only)
        gather.submit(command, partial(_note_errors, errors, entities))
        yield
    gather.close()


def _decode(entry: Any) -> QuotaAlteration:
    """The alteration, with one change more than is taken if there are too many."""
    entity = {each.entity_type: each.entity_name for each in entry.entity[:_PARTS_MAX]}
    ops = entry.ops[: CHANGES_PER_ALTERATION_MAX + 1]
    changes = tuple(QuotaChange(op.key, None if op.remove else op.value) for op in ops)
    return QuotaAlteration(tuple(entity.items()), changes)


def _note_errors(
    errors: dict[_Entity, GroupError | None], entities: Sequence[_Entity], answer: Answer
) -> None:
    if isinstance(answer, GroupError):
        errors.update(dict.fromkeys(entities, answer))
        return
    assert isinstance(answer, AlterQuotasResponse)
    errors.update(zip(entities, answer.errors, strict=True))


def _make_all(context: RequestContext, errors: Mapping[_Entity, GroupError | None]) -> Steps[Any]:
    rows = (_make_entry(entity, error) for entity, error in errors.items())
    answer = LongAnswer(context)
    encoded = yield from answer.encode(wire.EntryData, ("entries",), len(errors), rows)
    return wire.AlterClientQuotasResponse(throttle_time=0, entries=encoded)


def _make_entry(entity: _Entity, error: GroupError | None) -> Any:
    return wire.EntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=tuple(
            wire.EntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(entity, key=itemgetter(0))
        ),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every entity."""
    error = GroupError(message)
    error.code = code
    entities = dict.fromkeys(frozenset(_decode(entry).entity) for entry in request.entries)
    entries = [_make_entry(entity, error) for entity in entities]
    return wire.AlterClientQuotasResponse(throttle_time=0, entries=entries)


API = Api(
    key=KEY,
    name="AlterClientQuotas",
    versions=range(2),
    handler=handle,
    failed=failed,
    is_large=True,
)
