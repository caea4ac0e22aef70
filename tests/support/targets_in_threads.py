"""Targets that are computed in the thread, however small they are."""

from __future__ import annotations

from coordinator.runtime.runtime import Runtime
from coordinator.runtime.targets.quick_targets import QuickTargets


def never_quick(runtime: Runtime) -> None:
    """From now on no target of this runtime is computed within a batch."""
    targets = runtime.parts.targets
    targets._quick = QuickTargets(targets._assignments, budget_ms=0)
