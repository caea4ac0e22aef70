"""Commands about client quotas."""

from __future__ import annotations

from typing import Final

from model.access.quotas import QuotaAlteration
from model.caller import Caller
from model.value import value

ALTERATIONS_PER_COMMAND_MAX: Final = 500
"""All alterations of a command are written at once; front ends submit several for more."""
CHANGES_PER_ALTERATION_MAX: Final = 100
"""Far more than an entity can have."""


@value
class AlterQuotas:
    """Change quotas; each alteration is made or refused on its own."""

    caller: Caller
    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


@value
class DescribeQuotas:
    """List all quotas; front ends choose those that a filter means, in time slices."""

    caller: Caller
