"""What the state machines over a driver of the core have in common."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.support.core_driver import DROPS_TOMBSTONES, CoreDriver, check_replay


class DriverMachine(RuleBasedStateMachine):
    """After each step the driver is sound, at the end it settles; its log may be compacted."""

    core: CoreDriver

    @rule(are_late=st.booleans())
    def hurry(self, are_late: bool) -> None:
        """Targets are computed at once from now on, or late; the oldest late one comes in."""
        self.core.are_targets_late = are_late
        self.core.install_late()

    @rule(first=st.floats(0, 1), end=st.floats(0, 1), drops=st.integers(0, DROPS_TOMBSTONES))
    def replay_a_compaction(self, first: float, end: float, drops: int) -> None:
        """S14."""
        size = len(self.core.log)
        low, high = sorted((int(first * size), int(end * size)))
        check_replay(self.core, low, high, drops)

    @invariant()
    def sound(self) -> None:
        self.core.check()

    def teardown(self) -> None:
        self.core.settle()
