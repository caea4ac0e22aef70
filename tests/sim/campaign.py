"""Many seeds: as many as are asked for, or as the CPU time that is given allows."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.sim.checkers.violations import Violation
from tests.sim.kinds import KINDS, Kind, Result
from tests.sim.tables import Pair, compute_undeclared, compute_unreached

SEEDS_FOR_ALL_PAIRS = 150
"""With fewer seeds a pair of the tables may be missed by chance."""
SEEDS_FOR_RARE_STEPS = 2_000


@dataclass
class Failure:
    """A seed that did not pass."""

    seed: int
    name: str
    what: str
    where: str
    kind: str

    @property
    def rerun(self) -> str:
        return f"python -m tests.sim --kind {self.kind} --start {self.seed} --seeds 1 --verbose"


@dataclass
class Totals:
    """What a campaign of one kind of worlds came to."""

    kind: Kind = KINDS["core"]
    seeds: int = 0
    delivered: int = 0
    cpu_seconds: float = 0.0
    virtual_seconds: float = 0.0
    slowest_convergence_ms: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[Pair] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.delivered += result.delivered
        self.virtual_seconds += result.virtual_ms / 1000
        self.slowest_convergence_ms = max(self.slowest_convergence_ms, result.converged_ms)
        self.faults += result.faults
        self.reached += result.reached

    def merge(self, other: Totals) -> None:
        self.seeds += other.seeds
        self.delivered += other.delivered
        self.cpu_seconds += other.cpu_seconds
        self.virtual_seconds += other.virtual_seconds
        self.slowest_convergence_ms = max(self.slowest_convergence_ms, other.slowest_convergence_ms)
        self.faults += other.faults
        self.reached += other.reached
        self.failures += other.failures

    def unreached(self) -> list[Pair]:
        """Pairs of the tables that should have been reached by so many seeds, and were not."""
        if self.seeds < SEEDS_FOR_ALL_PAIRS or not self.kind.has_tables:
            return []
        return compute_unreached(self.reached, self.seeds >= SEEDS_FOR_RARE_STEPS)

    @property
    def has_passed(self) -> bool:
        return not self.failures and not self.unreached()


def run_seeds(
    seeds: Iterable[int],
    cpu_seconds: float | None = None,
    on_seed: Callable[[Totals], None] = lambda totals: None,
    kind: str = "core",
) -> Totals:
    """Run seeds until they end, one fails, or the CPU time is used up."""
    totals = Totals(KINDS[kind])
    began = time.process_time()
    for seed in seeds:
        try:
            totals.add(totals.kind.run_seed(seed))
        except (Exception, Violation) as failure:  # noqa: BLE001 - whatever it is, the seed is what matters
            name = failure.name if isinstance(failure, Violation) else type(failure).__name__
            where = traceback.format_exc(limit=-8)
            totals.failures.append(Failure(seed, name, str(failure)[:2_000], where, kind))
        totals.cpu_seconds = time.process_time() - began
        on_seed(totals)
        if totals.failures or (cpu_seconds is not None and totals.cpu_seconds >= cpu_seconds):
            break
    return totals


def format_totals(totals: Totals) -> str:
    """For people: what was run, which faults struck, which pairs were reached."""
    per_seed = totals.cpu_seconds / totals.seeds if totals.seeds else 0.0
    lines = [
        f"{totals.kind.name}: {totals.seeds} seeds passed: {totals.delivered} messages delivered, "
        f"{totals.virtual_seconds / 3600:.1f} h of virtual time in {totals.cpu_seconds:.0f} s of "
        f"CPU ({per_seed:.3f} s a seed); slowest convergence "
        f"{totals.slowest_convergence_ms / 1000:.1f} s",
        "",
        "faults:",
        *(f"  {count:>9}  {kind}" for kind, count in totals.faults.most_common()),
        "",
        "event and state:",
        *(
            f"  {count:>9}  {kind}: {event} in {state}"
            for (kind, event, state), count in sorted(totals.reached.items())
        ),
    ]
    unreached = totals.unreached()
    if unreached:
        lines.append(f"never reached: {unreached}")
    undeclared = compute_undeclared(totals.reached)
    if undeclared and totals.kind.has_tables:
        lines.append(f"not in the tables: {undeclared}")
    for failure in totals.failures:
        lines += [
            "",
            f"{failure.kind} seed {failure.seed} failed: {failure.what}",
            failure.where,
            failure.rerun,
        ]
    return "\n".join(lines)
