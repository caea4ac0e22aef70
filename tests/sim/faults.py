"""What goes wrong in a seed: each kind is off in about half of them (swarm testing)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

KINDS = (
    "message lost",
    "response lost",
    "message duplicated",
    "message delayed",
    "member crash",
    "member pause",
    "server crash",
    "writes lost",
    "slow fsync",
    "process stall",
    "store stall",
    "slow assignor",
    "unacknowledged revocation",
    "stream break",
    "zombie",
    "clock jump",
    "clock freeze",
    "marker lost",
    "marker late",
    "marker doubled",
    "producer crash",
    "transaction abandoned",
    "transaction coordinator moved",
    "deletion",
    "settings changed",
    "member dies before its sync",
    "leader fails",
    "pending member dies",
    "nonsense said",
    "group converted",
)
"""``writes lost`` decides whether a server crash may lose what was written and not synced."""

CERTAIN = (
    "message lost",
    "response lost",
    "message duplicated",
    "member crash",
    "member pause",
    "server crash",
    "process stall",
)
"""Kinds that happen when they are on, whatever the clients do."""

FAULTS_MIN = 5
KINDS_MIN = 3


@dataclass
class Faults:
    """The kinds that are on in this seed, how likely they are, and how often they happened."""

    random: Random
    on: frozenset[str] = frozenset()
    happened: Counter[str] = field(default_factory=Counter)
    is_healed: bool = False

    @classmethod
    def choose(cls, rng: Random) -> Faults:
        """Each kind in about half of the seeds; at least three that are certain to happen."""
        on = {kind for kind in KINDS if rng.random() < 0.5}
        lacking = [kind for kind in CERTAIN if kind not in on]
        rng.shuffle(lacking)
        while len(on & set(CERTAIN)) < KINDS_MIN:
            on.add(lacking.pop())
        faults = cls(rng, frozenset(on))
        faults.probability = {
            "message lost": rng.uniform(0.01, 0.15),
            "response lost": rng.uniform(0.01, 0.15),
            "message duplicated": rng.uniform(0.05, 0.4),
            "message delayed": rng.uniform(0.05, 0.5),
            "slow fsync": rng.uniform(0.05, 0.4),
            "store stall": rng.uniform(0.02, 0.2),
            "slow assignor": rng.uniform(0.3, 1.0),
            "unacknowledged revocation": rng.uniform(0.1, 0.4),
            "stream break": rng.uniform(0.01, 0.1),
            "marker lost": rng.uniform(0.05, 0.4),
            "marker late": rng.uniform(0.1, 0.6),
            "marker doubled": rng.uniform(0.1, 0.5),
            "producer crash": rng.uniform(0.1, 0.4),
            "transaction abandoned": rng.uniform(0.05, 0.3),
            "member dies before its sync": rng.uniform(0.05, 0.3),
            "leader fails": rng.uniform(0.05, 0.3),
            "pending member dies": rng.uniform(0.05, 0.3),
            "nonsense said": rng.uniform(0.05, 0.3),
        }
        return faults

    probability: dict[str, float] = field(default_factory=dict)

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

    @property
    def is_enough(self) -> bool:
        """What a seed must have had."""
        return self.happened.total() >= FAULTS_MIN and len(self.happened) >= KINDS_MIN
