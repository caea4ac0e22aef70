"""Many seeds, and what they were made of."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.sim.sessions.run import Result, run_seed
from tests.sim.violations import Violation


@dataclass
class Failure:
    """A seed that found something."""

    seed: int
    what: str
    where: str

    @property
    def rerun(self) -> str:
        """How to see it."""
        return f"python -m tests.sim.sessions --seed {self.seed}"


@dataclass
class Totals:
    """Of all seeds that passed, and those that did not."""

    seeds: int = 0
    delivered: int = 0
    commits: int = 0
    virtual_ms: int = 0
    cpu_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """One more that has passed."""
        self.seeds += 1
        self.delivered += result.delivered
        self.commits += result.commits
        self.virtual_ms += result.virtual_ms
        self.faults += result.faults


def run_seeds(
    seeds: Iterable[int],
    *,
    cpu_seconds: float | None = None,
    keeps_going: bool = False,
    on_failure: Callable[[Failure], None] = lambda failure: None,
) -> Totals:
    """Run seeds until they end, one fails, or the CPU time is used up."""
    totals = Totals()
    began = time.process_time()
    for seed in seeds:
        try:
            totals.add(run_seed(seed))
        except (Exception, Violation) as failure:  # noqa: BLE001 - the seed is what matters
            where = traceback.format_exc(limit=-8)
            totals.failures.append(Failure(seed, str(failure)[:2_000], where))
            on_failure(totals.failures[-1])
        totals.cpu_seconds = time.process_time() - began
        is_over = cpu_seconds is not None and totals.cpu_seconds >= cpu_seconds
        if is_over or (totals.failures and not keeps_going):
            break
    return totals


def format_totals(totals: Totals) -> str:
    """For people."""
    seeds = totals.seeds + len(totals.failures)
    lines = [
        f"{totals.seeds} of {seeds} seeds passed: {totals.delivered} frames, {totals.commits} "
        f"commits, {totals.virtual_ms / 3_600_000:.1f} h of virtual time in "
        f"{totals.cpu_seconds:.0f} s of CPU ({totals.cpu_seconds / max(seeds, 1):.3f} s a seed)",
        "",
        "faults:",
        *(f"  {count:>9}  {kind}" for kind, count in totals.faults.most_common()),
    ]
    for failure in totals.failures:
        lines += ["", f"seed {failure.seed} failed: {failure.what}", failure.where, failure.rerun]
    return "\n".join(lines)
