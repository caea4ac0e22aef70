"""The log lines for changes of place: one a change, with what caused it."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from model.ids import GroupId
from model.places import Place

log = structlog.get_logger("muster.upstream")

_NAMED_MAX = 5


def log_place_changed(group_id: GroupId, before: Place, after: Place, cause: str) -> None:
    """A group has gone from one place to another."""
    log.info(
        "group_place_changed",
        **{"group": group_id, "from": before.value, "to": after.value, "cause": cause},
    )


def log_takeover_put_off(group_id: GroupId, cause: str, strangers: Sequence[str] = ()) -> None:
    """A group stays where it is. ``strangers``: who is in the way, as ``CLIENT-ID HOST``."""
    log.warning(
        "takeover_put_off",
        group=group_id,
        cause=cause,
        strangers=list(strangers[:_NAMED_MAX]),
        strangers_left_out=max(len(strangers) - _NAMED_MAX, 0),
    )


def log_sentinel_joined(group_id: GroupId, member_id: str, generation: int) -> None:
    """The sentinel is the cluster's only member of a group."""
    log.info("sentinel_joined", group=group_id, member=member_id, generation=generation)


def log_sentinel_lost(group_id: GroupId, cause: str) -> None:
    """The sentinel's place was taken away: until it has it again, commits wait."""
    log.warning("sentinel_lost", group=group_id, cause=cause)
