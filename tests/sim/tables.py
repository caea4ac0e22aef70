"""Which events can meet a member or a group in which state: all of it must be reached.

A pair that is not listed cannot come about: a member that must revoke is never at an epoch whose
predecessor it could still use, only a member that must revoke has a rebalance timeout, a target is
not computed for a group that has it, and an empty group subscribes to nothing. What is ``RARE``
can, and few seeds see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from coordinator.core.classic import classic_draft, classic_sync
from coordinator.core.state.classic.classic_states import (
    STEPS,
    ClassicEvent,
    ClassicGroupState,
    Step,
)
from tests.sim.conversions import STAGES

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
CLASSIC = {state: f"classic {state.value}" for state in ClassicGroupState}
"""The states of classic groups; some have the names of other states."""
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

_C_EMPTY, _C_JOINING, _C_SYNCING, _C_STABLE = (
    CLASSIC[state]
    for state in (
        ClassicGroupState.EMPTY,
        ClassicGroupState.PREPARING_REBALANCE,
        ClassicGroupState.COMPLETING_REBALANCE,
        ClassicGroupState.STABLE,
    )
)
_AT_WORK = (_C_JOINING, _C_STABLE)

CLASSIC_TABLE: Mapping[str, tuple[str, ...]] = {
    "classic join": (NONE, SIMPLE, *WITH_MEMBERS, _C_EMPTY, _C_JOINING, _C_SYNCING, _C_STABLE),
    "classic sync": (*WITH_MEMBERS, _C_JOINING, _C_SYNCING, _C_STABLE),
    "classic heartbeat": (SIMPLE, *WITH_MEMBERS, _C_JOINING, _C_SYNCING, _C_STABLE),
    "classic leave": (SIMPLE, *WITH_MEMBERS, *_AT_WORK),
    "classic session timeout": (ASSIGNING, RECONCILING, *_AT_WORK),
    "classic join phase": (_C_JOINING,),
    "join": (_C_EMPTY, *_AT_WORK),
    "heartbeat": (_C_STABLE,),
    "leave": _AT_WORK,
    "commit": _AT_WORK,
    "simple commit": _AT_WORK,
    "transactional commit": (_C_EMPTY, _C_JOINING, _C_SYNCING, _C_STABLE),
    "commit marker": _AT_WORK,
    "abort marker": _AT_WORK,
    "delete offsets": _AT_WORK,
    "settings": _AT_WORK,
    "fetch": _AT_WORK,
    "describe": _AT_WORK,
    "restart": (_C_EMPTY, _C_STABLE),
}
"""Event of a group, where it is a classic one or the event is one of classic members: the states
that must be reached. Any other state can be."""

Pair = tuple[str, str, str]

RARE: frozenset[Pair] = frozenset(
    {
        # The group was deleted while its target was computed, and perhaps made anew.
        ("group", "target", NONE),
        ("group", "target", GROUP_STABLE),
        ("group", "join while a target is computed", NONE),
        ("group", "join while a target is computed", EMPTY),
        ("group", "join while a target is computed", RECONCILING),
        ("group", "join while a target is computed", GROUP_STABLE),
        ("group", "delete group", EMPTY),
        ("group", "offset expiry", EMPTY),
        ("group", "offset expiry", ASSIGNING),
        ("group", "simple commit", EMPTY),
        # Somebody joins an empty group soon, by one protocol or the other.
        *(
            ("group", event, EMPTY)
            for event in (
                "heartbeat",
                "target",
                "commit",
                "commit marker",
                "abort marker",
                "delete offsets",
                "settings",
            )
        ),
    }
)


_P, _C, _S = (
    ClassicGroupState.PREPARING_REBALANCE,
    ClassicGroupState.COMPLETING_REBALANCE,
    ClassicGroupState.STABLE,
)
IMPOSSIBLE = frozenset(
    {
        # Nobody is a member of an empty group, and a dead one is not there.
        *(
            (state, event)
            for state, event in STEPS
            if state is ClassicGroupState.DEAD
            # There is no cluster that a group could go to.
            or event is ClassicEvent.MOVED
            or (
                state is ClassicGroupState.EMPTY
                and event not in (ClassicEvent.JOIN, ClassicEvent.GONE)
            )
        ),
        # What is loaded is at rest.
        (_P, ClassicEvent.TOO_LARGE),
        (_C, ClassicEvent.TOO_LARGE),
        # Syncs are awaited from the end of the join phase on.
        (_P, ClassicEvent.SYNC_TIMEOUT),
        # Which protocol stays is asked of groups that have assigned by it.
        (_P, ClassicEvent.REPLACE),
        (_C, ClassicEvent.REPLACE),
    }
)
"""Rows of the table of classic groups that say what would be so; nothing comes to ask."""

RARE_STEPS = frozenset(
    {
        (ClassicGroupState.EMPTY, ClassicEvent.GONE),
        (_C, ClassicEvent.SYNC_TIMEOUT),
        (_S, ClassicEvent.SYNC_TIMEOUT),
        (_S, ClassicEvent.LEADER_REJOIN),
        (_S, ClassicEvent.REPLACE_OTHERWISE),
        (_S, ClassicEvent.FAILED_SYNC),
        (_S, ClassicEvent.TOO_LARGE),
    }
)
"""What a few hundred seeds may miss; thousands do not."""

CONVERSION_TABLE: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("made", *STAGES), ("upgrade", "downgrade")
)
"""What happens to a conversion: of which kind each has to be."""


def all_pairs() -> list[Pair]:
    """(member, group, classic group or conversion, event, state) of all tables."""
    tables = (
        ("member", MEMBER_TABLE),
        ("group", GROUP_TABLE),
        ("group", CLASSIC_TABLE),
        ("conversion", CONVERSION_TABLE),
    )
    pairs = [
        (kind, event, state)
        for kind, table in tables
        for event, states in table.items()
        for state in states
    ]
    steps = [step for step in STEPS if step not in IMPOSSIBLE]
    return pairs + [_pair_of(state, event) for state, event in steps]


def _pair_of(state: ClassicGroupState, event: ClassicEvent) -> Pair:
    return "classic group", event.name.lower().replace("_", " "), state.value


class _TalliedSteps(dict[tuple[ClassicGroupState, ClassicEvent], Step]):
    """The table of the states of classic groups, which counts what it is asked."""

    def __init__(self, reached: Counter[Pair]) -> None:
        super().__init__(STEPS)
        self._reached = reached

    def __getitem__(self, asked: tuple[ClassicGroupState, ClassicEvent]) -> Step:
        self._reached[_PAIRS[asked]] += 1
        return super().__getitem__(asked)


_PAIRS = {(state, event): _pair_of(state, event) for state, event in STEPS}


@contextmanager
def tallied_steps(reached: Counter[Pair]) -> Iterator[None]:
    """The core asks a table that counts."""
    users = (classic_draft, classic_sync)
    counting = _TalliedSteps(reached)
    try:
        for module in users:
            module.STEPS = counting
        yield
    finally:
        for module in users:
            module.STEPS = STEPS


def compute_unreached(reached: Counter[Pair], with_rare_steps: bool) -> list[Pair]:
    """The pairs of the tables that were never reached."""
    rare = set(RARE)
    if not with_rare_steps:
        rare.update(_pair_of(state, event) for state, event in RARE_STEPS)
    return [pair for pair in all_pairs() if not reached[pair] and pair not in rare]


def compute_undeclared(reached: Counter[Pair]) -> list[Pair]:
    """The pairs that were reached although the tables say that they cannot be."""
    return sorted(
        pair
        for pair in set(reached) - set(all_pairs()) - RARE
        if not (pair[1].startswith("classic ") or pair[2].startswith("classic "))
    )
