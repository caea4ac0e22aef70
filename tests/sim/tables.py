"""Which events can meet a member or a group in which state: all of it must be reached.

A pair that is not listed cannot come about: a member that must revoke is never at an epoch whose
predecessor it could still use, only a member that must revoke has a rebalance timeout, a target is
not computed for a group that has it, and an empty group subscribes to nothing. What is ``RARE``
can, and few seeds see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

NONE = "none"
STABLE = "STABLE"
UNREVOKED = "UNREVOKED_PARTITIONS"
UNRELEASED = "UNRELEASED_PARTITIONS"
IN_GROUP = (STABLE, UNREVOKED, UNRELEASED)

SIMPLE = "simple"
EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
GROUP_STABLE = "Stable"
WITH_MEMBERS = (ASSIGNING, RECONCILING, GROUP_STABLE)

MEMBER_TABLE: Mapping[str, tuple[str, ...]] = {
    "join": (NONE, *IN_GROUP),
    "heartbeat": (NONE, *IN_GROUP),
    "acknowledge": IN_GROUP,
    "change": IN_GROUP,
    "previous epoch": (STABLE, UNRELEASED),
    "fenced epoch": IN_GROUP,
    "leave": (NONE, *IN_GROUP),
    "leave for a while": (NONE, *IN_GROUP),
    "return": IN_GROUP,
    "session timeout": IN_GROUP,
    "rebalance timeout": (UNREVOKED,),
    "commit": (NONE, *IN_GROUP),
    "commit, older epoch": IN_GROUP,
    "restart": IN_GROUP,
}
"""Event of a member: the states in which it can find the member."""

GROUP_TABLE: Mapping[str, tuple[str, ...]] = {
    "join": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "join while a target is computed": (ASSIGNING,),
    "heartbeat": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "leave": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "session timeout": WITH_MEMBERS,
    "rebalance timeout": (ASSIGNING, RECONCILING),
    "target": (EMPTY, ASSIGNING),
    "topics": WITH_MEMBERS,
    "commit": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "simple commit": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "transactional commit": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "commit marker": (SIMPLE, EMPTY, *WITH_MEMBERS),
    "abort marker": (SIMPLE, EMPTY, *WITH_MEMBERS),
    "delete group": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "delete offsets": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "offset expiry": (SIMPLE, EMPTY, *WITH_MEMBERS),
    "settings": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "fetch": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "describe": (NONE, SIMPLE, EMPTY, *WITH_MEMBERS),
    "restart": (SIMPLE, EMPTY, *WITH_MEMBERS),
}
"""Event of a group: the states in which it can find the group."""

Pair = tuple[str, str, str]

RARE: frozenset[Pair] = frozenset(
    {
        # The group was deleted while its target was computed, and perhaps made anew.
        ("group", "target", NONE),
        ("group", "target", GROUP_STABLE),
        ("group", "join while a target is computed", NONE),
        ("group", "join while a target is computed", EMPTY),
        ("group", "delete group", EMPTY),
        ("group", "offset expiry", EMPTY),
        ("group", "offset expiry", ASSIGNING),
        ("group", "simple commit", EMPTY),
    }
)


def all_pairs() -> list[Pair]:
    """(member or group, event, state) of both tables."""
    tables = (("member", MEMBER_TABLE), ("group", GROUP_TABLE))
    return [
        (kind, event, state)
        for kind, table in tables
        for event, states in table.items()
        for state in states
    ]


def compute_unreached(reached: Counter[Pair]) -> list[Pair]:
    """The pairs of the tables that were never reached."""
    return [pair for pair in all_pairs() if not reached[pair] and pair not in RARE]


def compute_undeclared(reached: Counter[Pair]) -> list[Pair]:
    """The pairs that were reached although the tables say that they cannot be."""
    return sorted(set(reached) - set(all_pairs()) - RARE)
