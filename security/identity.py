"""Who a client has shown to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from model.caller import ANONYMOUS


@dataclass(frozen=True, slots=True)
class Identity:
    """A principal, and the further ones that ACLs may name (``Group:NAME``).

    ``expires_at_ms``: when what showed it ends, in milliseconds since 1970; ``None`` for never.
    """

    principal: str
    groups: tuple[str, ...] = ()
    expires_at_ms: int | None = None


NOBODY: Final = Identity(ANONYMOUS)
"""A client that has not authenticated."""
