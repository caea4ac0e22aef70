"""Which entities a filter means, in time slices."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final, TypeAlias

from model.access.quotas import IP, QuotaEntity, QuotaFilter
from security.quotas.addresses import parse_address

Quotas: TypeAlias = tuple[QuotaEntity, Mapping[str, float]]

SLICE: Final = 1_000
"""Entities looked at between two yields."""


def canonize_filter(means: QuotaFilter) -> QuotaFilter:
    """The filter with addresses as entities have them."""
    parts = []
    for part in means.parts:
        if part.entity_type == IP and part.name:
            with suppress(ValueError):
                parts.append(part._replace(name=parse_address(part.name).text))
                continue
        parts.append(part)
    return means._replace(parts=tuple(parts))


def select_quotas(
    quotas: Iterable[Quotas], means: QuotaFilter
) -> Generator[None, None, list[Quotas]]:
    """The entities that the filter means with their quotas, sorted."""
    found: list[Quotas] = []
    left = iter(quotas)
    while taken := list(islice(left, SLICE)):
        found += (each for each in taken if means.means(each[0]))
        yield
    found.sort(key=_compute_order)
    return found


def _compute_order(quotas: Quotas) -> tuple[tuple[bool, str], ...]:
    return tuple((name is not None, name or "") for name in quotas[0])
