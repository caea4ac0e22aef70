"""Answers to commands about client quotas."""

from __future__ import annotations

from collections.abc import Mapping

from model.access.quotas import QuotaEntity
from model.errors import GroupError
from model.value import value


@value
class AlterQuotasResponse:
    """For each alteration the error that refused it, or ``None``."""

    errors: tuple[GroupError | None, ...]


@value
class DescribeQuotasResponse:
    """All entities with quotas."""

    quotas: tuple[tuple[QuotaEntity, Mapping[str, float]], ...]
