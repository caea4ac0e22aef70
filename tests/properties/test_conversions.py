"""Groups that change their type, whatever their members and the server do meanwhile.

What is loaded from the log tells each member what the live server would; and where everybody hears
that all is well, each partition is read by one member.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.properties.conversions_driver import COOPERATIVE, EAGER, ConversionsDriver

NAMES = st.sampled_from(["k", "s", "t"])
STATIC = ("s", "t")


class ConversionsMachine(RuleBasedStateMachine):
    core: ConversionsDriver

    @initialize(partitions=st.integers(2, 6), protocol=st.sampled_from([EAGER, COOPERATIVE]))
    def begin(self, partitions: int, protocol: str) -> None:
        self.core = ConversionsDriver(partitions, protocol)

    @rule(name=NAMES, is_classic=st.booleans())
    def start(self, name: str, is_classic: bool) -> None:
        """Another process of that name."""
        self.core.start(name, is_classic, name in STATIC)

    @rule(name=NAMES, returns=st.booleans())
    def turn(self, name: str, returns: bool) -> None:
        """It is away, others take their steps, and it is back with the other protocol."""
        process = self.core.processes.get(name)
        if process is not None and returns:
            self.core.end(name, for_good=False)
            self.step_all()
        is_classic = process is None or not process.is_classic
        self.core.start(name, is_classic, name in STATIC)

    @rule(names=st.permutations(STATIC))
    def turn_both(self, names: list[str]) -> None:
        """Two that are static, before anybody else hears of the first."""
        for name in names:
            process = self.core.processes.get(name)
            self.core.start(name, process is None or not process.is_classic, is_static=True)

    @rule(first=NAMES, second=NAMES)
    def start_and_end(self, first: str, second: str) -> None:
        """A classic one starts and another one ends, in one batch."""
        if first != second:
            self.core.start(first, True, first in STATIC, settles=False)
            self.core.end(second, for_good=True)

    @rule(name=NAMES)
    def stop(self, name: str) -> None:
        """For good."""
        self.core.end(name, for_good=True)

    @rule(name=NAMES)
    def pause(self, name: str) -> None:
        """Its place may be taken later."""
        self.core.end(name, for_good=False)

    @rule(name=NAMES)
    def step(self, name: str) -> None:
        self.core.step(name)

    @rule(first=NAMES, second=NAMES)
    def step_together(self, first: str, second: str) -> None:
        """In one batch."""
        self.core.step(first, settles=False)
        self.core.step(second)

    @rule(first=NAMES, second=NAMES)
    def step_and_end(self, first: str, second: str) -> None:
        """In one batch."""
        self.core.step(first, settles=False)
        if first != second:
            self.core.end(second, for_good=False, settles=False)
        self.core.step(first)

    @rule()
    def step_all(self) -> None:
        for name in list(self.core.processes):
            self.core.step(name)

    @rule(survives=st.booleans())
    def crash(self, survives: bool) -> None:
        self.core.crash(survives)

    def teardown(self) -> None:
        if hasattr(self, "core"):
            self.core.settle()


TestConversions = ConversionsMachine.TestCase
TestConversions.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
