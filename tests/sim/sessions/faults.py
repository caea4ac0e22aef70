"""What goes wrong in a seed; each kind is off in about half of them (swarm testing)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

LATE = (
    "late join",
    "late acknowledge",
    "late commit",
    "late leave",
    "late call",
)
"""The connection stands from this request on: the client goes on over another one, and it comes
after what that brings."""

UNANSWERED = (
    "unanswered join",
    "unanswered acknowledge",
    "unanswered commit",
    "unanswered leave",
    "unanswered call",
)
"""The request is handled, and its answer never comes: the connection breaks or stands."""

KINDS = (
    *LATE,
    *UNANSWERED,
    "delay",
    "half-open",
    "one way",
    "reset",
    "blackout",
    "server crash",
    "writes lost",
    "server stop",
    "server stall",
    "client stall",
    "client crash",
    "slow sync",
    "cancelled join",
    "cancelled close",
    "cancelled commit",
    "cancelled fetch",
    "callback raises",
    "slow revocation",
    "concurrent commits",
    "commits without waiting",
    "polls too rarely",
    "asks for an assignment",
    "session timeout changed",
    "topic grown",
    "topic deleted",
)
"""``writes lost``: whether a server crash may lose what was written and not synced."""


@dataclass
class Faults:
    """The kinds that are on in this seed, how likely they are, and how often they happened."""

    random: Random
    on: frozenset[str] = frozenset()
    probability: dict[str, float] = field(default_factory=dict)
    happened: Counter[str] = field(default_factory=Counter)
    is_healed: bool = False

    @classmethod
    def choose(cls, rng: Random) -> Faults:
        """Each kind in about half of the seeds; where few are on they strike more often."""
        share = rng.choice((0.25, 0.5, 0.5, 0.75))
        on = frozenset(kind for kind in KINDS if rng.random() < share)
        often = {kind: rng.uniform(0.02, 0.3) for kind in KINDS}
        for kind in LATE + UNANSWERED:
            often[kind] = rng.choice((0.01, 0.03, 0.1))
        for kind in ("late join", "unanswered join", "late leave", "unanswered leave"):
            often[kind] = rng.uniform(0.05, 0.4)
        often["delay"] = rng.choice((0.02, 0.1, 0.3))
        often["slow revocation"] = rng.uniform(0.2, 0.8)
        often["commits without waiting"] = rng.uniform(0.3, 0.9)
        often["cancelled close"] = often["cancelled join"] = rng.uniform(0.2, 0.8)
        return cls(rng, on, often)

    def is_on(self, kind: str) -> bool:
        """Whether the kind may happen now."""
        return kind in self.on and not self.is_healed

    def strikes(self, kind: str) -> bool:
        """Whether it happens here and now; counted if so."""
        if not self.is_on(kind) or self.random.random() >= self.probability[kind]:
            return False
        self.happened[kind] += 1
        return True

    def note(self, kind: str) -> None:
        """It happened."""
        self.happened[kind] += 1
