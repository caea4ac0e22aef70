"""What is wrong with a JoinGroup that is refused at once."""

from __future__ import annotations

from typing import Any, Final

from tests.differential.classic.classic_steps import ClassicFlaw

SESSION_MS: Final = 1_800_000
"""The longest that both sides allow."""


def compute_flaw(flaw: ClassicFlaw | None) -> dict[str, Any]:
    """The fields of a JoinGroup that make it wrong."""
    match flaw:
        case None:
            return {}
        case ClassicFlaw.NO_GROUP_ID:
            return {"group_id": ""}
        case ClassicFlaw.NO_PROTOCOLS:
            return {"protocols": []}
        case ClassicFlaw.NO_TYPE:
            return {"protocol_type": ""}
        case ClassicFlaw.OTHER_TYPE:
            return {"protocol_type": "other", "member_id": "nobody"}
        case ClassicFlaw.SHORT_SESSION:
            return {"session_timeout": 50}
        case ClassicFlaw.LONG_SESSION:
            return {"session_timeout": SESSION_MS + 1}
        case ClassicFlaw.UNKNOWN_MEMBER:
            return {"member_id": "nobody"}
        case ClassicFlaw.UNKNOWN_STATIC_MEMBER:
            return {"member_id": "nobody", "group_instance_id": "nobody"}
