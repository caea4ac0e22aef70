"""What a seed is about: each stays random, but some sequences are likelier in it than in others."""

from __future__ import annotations

from dataclasses import dataclass

from model.configs.migration_policy import BIDIRECTIONAL, MIGRATION_POLICIES


@dataclass(frozen=True)
class Theme:
    """``actions`` are what happens, by how likely it is. ``classic``: the share of such members."""

    name: str
    actions: dict[str, int]
    faults: frozenset[str] = frozenset()
    parks_ms: tuple[int, ...] = (500, 500, 500, 2_500, 0)
    policies: tuple[str, ...] = (BIDIRECTIONAL,)
    classic: tuple[float, ...] = (0.5,)
    static: float = 0.3
    members: tuple[int, int] = (2, 5)
    """How many there are at first, and at most."""
    safety_ms: int = 30_000
    gaps_ms: tuple[int, ...] = (50, 100, 300, 1_000, 3_000)
    revoke_ms: tuple[int, ...] = (0, 0, 100, 1_000)
    pipelines: float = 0.4
    """How many of the classic members commit for others on the connection that they join by."""
    beats_ms: tuple[int, ...] = (400, 1_000)
    """How often classic members heartbeat."""
    ends_at_a_conversion: float = 0.0
    """How often nothing else happens once a group has changed its type."""
    ends_at_a_turn: float = 0.0
    """The same of a group that was of the other type just before."""
    partitions: tuple[int, int] = (2, 6)
    """Of the topic that everybody reads."""
    crowd: int = 0
    """Groups of nobody with offsets, so that a walk over all offsets takes its time."""


HALF_OPEN = Theme(
    "half-open",
    {
        "start": 4,
        "stop": 3,
        "kill": 1,
        "subscribe": 2,
        "break while waiting": 4,
        "break and change": 40,
        "newcomer breaks": 40,
        "cut": 1,
        "fall silent": 2,
        "pause": 1,
        "server crash": 1,
    },
    frozenset({"half-open while a request waits", "slow to revoke"}),
    parks_ms=(1_000, 2_500, 2_500, 2_500),
    classic=(0.0, 0.0, 0.0, 0.3),
    static=0.1,
    members=(2, 7),
    partitions=(6, 12),
    # Calm enough for intervals to grow to their rest, so that parks are long.
    gaps_ms=(300, 9_000, 13_000),
    safety_ms=100_000,
    revoke_ms=(0, 50, 400, 1_500, 3_000),
)
PIPELINE = Theme(
    "pipeline",
    {
        "start": 6,
        "stop": 5,
        "kill": 1,
        "subscribe": 4,
        "break while waiting": 2,
        "cut": 1,
        "fall silent": 1,
        "pause": 1,
    },
    parks_ms=(500, 0),
    classic=(1.0, 0.8),
    static=0.2,
    gaps_ms=(100, 500, 1_000, 3_000),
    pipelines=0.9,
)
CONVERSION = Theme(
    "conversion",
    {
        "start": 6,
        "stop": 4,
        "kill": 2,
        "subscribe": 3,
        "last of a protocol goes": 16,
        "instance changes its protocol": 12,
        "grow": 2,
        "policy": 1,
        "break while waiting": 1,
        "server crash": 1,
    },
    frozenset({"crash after a conversion"}),
    parks_ms=(500, 0, 0),
    policies=(*(BIDIRECTIONAL,) * 20, *MIGRATION_POLICIES),
    classic=(0.5, 0.6),
    beats_ms=(1_000, 3_000, 3_000),
    ends_at_a_conversion=0.6,
    static=0.25,
    # Calm enough for a group to settle before it changes its type.
    safety_ms=70_000,
    gaps_ms=(20, 300, 3_000, 9_000, 9_000, 9_000),
)
TURN = Theme(
    "turn",
    {
        "start": 2,
        "stop": 3,
        "instance changes its protocol": 24,
        "waits for the last": 4,
        "last of a protocol goes": 2,
        "server crash": 1,
    },
    parks_ms=(500, 0, 0),
    classic=(0.6, 0.8),
    beats_ms=(400, 1_000, 3_000, 3_000),
    ends_at_a_turn=0.8,
    partitions=(5, 9),
    static=0.2,
    safety_ms=80_000,
    gaps_ms=(300, 9_000, 9_000),
)
RECREATE = Theme(
    "recreate",
    {
        "start": 5,
        "stop": 5,
        "recreate": 8,
        "break while waiting": 1,
        "kill": 1,
        "server crash": 1,
    },
    frozenset({"topic recreated", "slow turns"}),
    classic=(0.0, 0.0, 0.2),
    static=0.0,
    crowd=12,
)
MIXED = Theme(
    "mixed",
    {
        "start": 6,
        "stop": 5,
        "kill": 2,
        "subscribe": 2,
        "grow": 1,
        "policy": 1,
        "last of a protocol goes": 2,
        "instance changes its protocol": 3,
        "break while waiting": 4,
        "break and change": 4,
        "cut": 2,
        "fall silent": 2,
        "pause": 2,
        "stall": 1,
        "server crash": 2,
    },
    policies=(BIDIRECTIONAL, *MIGRATION_POLICIES),
    classic=(0.0, 0.3, 0.5, 0.8),
)

THEMES = (HALF_OPEN, CONVERSION, PIPELINE, TURN, RECREATE, HALF_OPEN, CONVERSION, MIXED)


def choose_theme(seed: int) -> Theme:
    """By the number of the seed."""
    return THEMES[seed % len(THEMES)]
