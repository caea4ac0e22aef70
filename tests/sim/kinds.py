"""The kinds of worlds that a seed can be of: each a module with ``run_seed(seed, verbose)``."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tests.sim.tables import Pair


class Result(Protocol):
    """What every kind says of a seed."""

    @property
    def seed(self) -> int: ...
    @property
    def trace(self) -> str: ...
    @property
    def delivered(self) -> int: ...
    @property
    def faults(self) -> Counter[str]: ...
    @property
    def reached(self) -> Counter[Pair]: ...
    @property
    def virtual_ms(self) -> int: ...
    @property
    def converged_ms(self) -> int: ...


@dataclass(frozen=True)
class Kind:
    """``share`` is the part of the tests' CPU time that it gets.

    ``has_tables``: its seeds have to reach every pair of ``tables``.
    """

    name: str
    module: str
    share: int
    has_tables: bool = False

    def run_seed(self, seed: int, verbose: bool = False) -> Result:
        """Run a seed; raises a violation, or any other exception that a bug may bring about."""
        result: Result = importlib.import_module(self.module).run_seed(seed, verbose)
        return result


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("core", "tests.sim.run", share=5, has_tables=True),
        Kind("wire", "tests.sim.wire.run", share=5),
        Kind("sessions", "tests.sim.sessions.run", share=2),
    )
}
"""``core`` has the deepest checkers, around the core itself; ``wire`` the real door of the Kafka
wire, and owners that are judged from the outside; ``sessions`` the SDK and the doors of gRPC."""
