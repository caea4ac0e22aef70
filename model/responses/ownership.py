"""The response to the check of a fencing token."""

from __future__ import annotations

from enum import Enum

from model.value import value


class Ownership(Enum):
    """Whose a token is: the owner's, a former owner's, or nobody can tell."""

    OWNER = "owner"
    LOST = "lost"
    UNKNOWN = "unknown"


@value
class CheckTokenResponse:
    ownership: Ownership
