"""Client quotas in scenarios: ``quota commit_rate=5 user=a client-id=<default>``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from model.access.quotas import ENTITY_TYPES, QuotaAlteration, QuotaChange, QuotaEntity, name_parts
from model.commands.quotas import AlterQuotas, DescribeQuotas
from model.responses.quotas import AlterQuotasResponse, DescribeQuotasResponse
from tests.support.virtual.server import CALLER

DEFAULT = "<default>"


class Said(Protocol):
    """The parts of a line."""

    words: list[str]
    options: dict[str, str]


def make_alter(line: Said) -> AlterQuotas:
    """``quota``: new values of quotas, ``-`` for none, of an entity."""
    options = dict(line.options)
    validate_only = "validate" in line.words
    entity = tuple(
        (kind, None if name == DEFAULT else name)
        for kind in ENTITY_TYPES
        if (name := options.pop(kind, None)) is not None
    )
    changes = tuple(
        QuotaChange(key, None if value == "-" else float(value)) for key, value in options.items()
    )
    return AlterQuotas(CALLER, (QuotaAlteration(entity, changes),), validate_only)


def make_list(line: Said) -> DescribeQuotas:
    """``quotas``: all."""
    assert not line.words, line
    return DescribeQuotas(CALLER)


def format_quota_answer(answer: AlterQuotasResponse | DescribeQuotasResponse) -> list[str]:
    """A line for each alteration, or for each entity."""
    if isinstance(answer, DescribeQuotasResponse):
        return [format_quotas(*each) for each in answer.quotas] or ["no quotas"]
    return [f"{e.code.name}: {e.message}" if e else "done" for e in answer.errors]


def format_quotas(entity: QuotaEntity, quotas: Mapping[str, float]) -> str:
    """The quotas of one entity."""
    who = " ".join(f"{kind}={name or DEFAULT}" for kind, name in name_parts(entity).items())
    return f"{who}: " + (", ".join(f"{key}={value:g}" for key, value in quotas.items()) or "none")
