"""What goes wrong on the wire: kinds, how likely each is, and how often each happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from tests.sim.faults import Faults

KINDS = (
    "connection cut",
    "half-open connection",
    "half-open while a request waits",
    "answer lost",
    "old bytes late",
    "old bytes lost",
    "message delayed",
    "member crash",
    "member pause",
    "slow to revoke",
    "server crash",
    "crash after a conversion",
    "writes lost",
    "slow fsync",
    "slow turns",
    "slow assignor",
    "process stall",
    "instance replaced",
    "topic recreated",
)
CERTAIN = ("half-open while a request waits", "connection cut")


@dataclass
class WireFaults(Faults):
    """Kinds are on or off in a seed (swarm testing); ``always`` are those of its theme."""

    @classmethod
    def choose_for(cls, rng: Random, always: frozenset[str]) -> WireFaults:
        on = {kind for kind in KINDS if rng.random() < 0.5} | always
        faults = cls(rng, frozenset(on), Counter())
        faults.probability = {
            "connection cut": rng.uniform(0.002, 0.02),
            "half-open connection": rng.uniform(0.002, 0.02),
            "half-open while a request waits": rng.uniform(0.02, 0.1),
            "answer lost": rng.uniform(0.005, 0.03),
            "old bytes late": rng.uniform(0.3, 0.9),
            "message delayed": rng.uniform(0.02, 0.3),
            "slow fsync": rng.uniform(0.05, 0.4),
            "slow turns": rng.uniform(0.1, 0.5),
            "slow assignor": rng.uniform(0.2, 0.8),
            "slow to revoke": rng.uniform(0.1, 0.5),
            "crash after a conversion": rng.uniform(0.3, 0.9),
            "instance replaced": rng.uniform(0.1, 0.4),
        }
        if "slow to revoke" in always:
            faults.probability["slow to revoke"] = rng.uniform(0.2, 0.5)
        return faults
