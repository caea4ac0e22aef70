"""Makes every target computation run on a thread, however small."""

from __future__ import annotations

from coordinator.runtime.runtime import Runtime
from coordinator.runtime.targets.quick_targets import QuickTargets


def never_quick(runtime: Runtime) -> None:
    """Make the runtime compute every target on a thread from now on."""
    targets = runtime.parts.targets
    targets._quick = QuickTargets(targets._assignments, budget_ms=0)
