"""DescribeClientQuotas (48), versions 0 and 1: the quotas of the entities that a filter means.

Needs DESCRIBE_CONFIGS on the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import LongAnswer, reply_in_slices
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.access.quotas import (
    DEFAULT_NAME,
    ENTITY_TYPES,
    IP,
    QuotaEntity,
    QuotaFilter,
    QuotaFilterPart,
    name_parts,
)
from model.commands.quotas import DescribeQuotas
from model.errors import ErrorCode, GroupError, InvalidRequest
from model.responses.quotas import DescribeQuotasResponse
from security.quotas.quota_selection import canonize_filter, select_quotas

KEY = 48
wire = response_schema(KEY)

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2
_NOBODY: Final = "\0"
"""Nobody has the empty name, which stands for the default here."""


def handle(context: RequestContext, request: Any) -> None:
    """List the quotas by entity."""
    if not context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.reply(_make(code, "Cluster authorization failed.", None))
        return
    try:
        means = decode_filter(request)
    except GroupError as error:
        context.reply(_make(error.code, error.message, None))
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply(_make(answer.code, answer.message, None))
            return
        assert isinstance(answer, DescribeQuotasResponse)
        reply_in_slices(context, _make_all(context, answer.quotas, means))

    context.submit(DescribeQuotas(context.caller), on_answer)


def decode_filter(request: Any) -> QuotaFilter:
    """The filter of a request. Raises a ``GroupError`` as Kafka's ``ClientQuotasImage``."""
    parts: dict[str, QuotaFilterPart] = {}
    for component in request.components:
        entity_type = component.entity_type
        if not entity_type:
            raise InvalidRequest("Invalid empty entity type.")
        if entity_type in parts:
            raise InvalidRequest(
                f"Entity type {entity_type} cannot appear more than once in the filter."
            )
        if entity_type not in ENTITY_TYPES:
            raise _UnsupportedType(f"Unsupported entity type {entity_type[:100]}")
        name = _decode_match(component.match_type, component.match)
        parts[entity_type] = QuotaFilterPart(entity_type, name)
    if IP in parts and len(parts) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return canonize_filter(QuotaFilter(tuple(parts.values()), request.strict))


def _decode_match(match_type: int, match: str | None) -> str | None:
    if match_type == EXACT:
        if match is None:
            raise InvalidRequest(
                "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
        return match or _NOBODY
    if match_type not in (DEFAULT, SPECIFIED):
        raise InvalidRequest(f"Unknown match type {match_type}")
    if match is not None:
        name = "MATCH_TYPE_DEFAULT" if match_type == DEFAULT else "MATCH_TYPE_SPECIFIED"
        raise InvalidRequest(f"Request specified {name}, but also specified a match string.")
    return DEFAULT_NAME if match_type == DEFAULT else None


class _UnsupportedType(GroupError):
    code = ErrorCode.UNSUPPORTED_VERSION


def _make_all(
    context: RequestContext,
    quotas: Sequence[tuple[QuotaEntity, Mapping[str, float]]],
    means: QuotaFilter,
) -> Steps[Any]:
    found = yield from select_quotas(quotas, means)
    rows = (_make_entry(*each) for each in found)
    encoded = yield from LongAnswer(context).encode(wire.EntryData, ("entries",), len(found), rows)
    return _make(ErrorCode.NONE, None, encoded)


def _make_entry(entity: QuotaEntity, quotas: Mapping[str, float]) -> Any:
    return wire.EntryData(
        entity=tuple(
            wire.EntityData(entity_type=entity_type, entity_name=name or None)
            for entity_type, name in name_parts(entity).items()
        ),
        values=tuple(wire.ValueData(key=key, value=value) for key, value in quotas.items()),
    )


def _make(code: ErrorCode, message: str | None, entries: Any) -> Any:
    return wire.DescribeClientQuotasResponse(
        throttle_time=0, error_code=code, error_message=message, entries=entries
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _make(code, message, None)


API = Api(
    key=KEY,
    name="DescribeClientQuotas",
    versions=range(2),
    handler=handle,
    failed=failed,
    is_large=True,
)
