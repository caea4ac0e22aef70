"""Members that compute, under any sequence: no two owners, nothing stale in force, nothing lost.

S2, S13 with what is beside the log, and L1: whoever computes, and however wrong, the group settles.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from model.client_assignors import ClientAssignor
from tests.properties.client_assignor_driver import WAYS, LocalDriver

NAMES = ("a", "b", "c", "d")
TOPICS = st.sampled_from([("foo",), ("bar", "foo"), ("bar",), ()])
MINE = ClientAssignor("mine", 0, 2, 1, b"said")
LOCAL = st.sampled_from(
    [
        *[(MINE,), (MINE,), (MINE,), ()],
        (ClientAssignor("mine", 1, 4, 3), ClientAssignor("other", 0, 0, 0)),
        (ClientAssignor("other", 0, 1, 0), MINE),
        (ClientAssignor("mine", 5, 6, 6),),
    ]
)
PICK = st.integers(0, 11)


class LocalMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = LocalDriver()

    @initialize()
    def begin(self) -> None:
        self.driver.join("a", ("foo",), (MINE,))
        self.driver.join("b", ("bar", "foo"), (MINE,))

    def _pick(self, pick: int) -> str | None:
        names = sorted(self.driver.clients)
        return names[pick % len(names)] if names else None

    @rule(name=st.sampled_from(NAMES), topics=TOPICS, local=LOCAL)
    def join(self, name: str, topics: tuple[str, ...], local: tuple[ClientAssignor, ...]) -> None:
        self.driver.join(name, topics, local)

    @rule(pick=PICK, gives_up=st.booleans())
    def beat(self, pick: int, gives_up: bool) -> None:
        name = self._pick(pick)
        if name is not None:
            if gives_up:
                self.driver.give_up(name)
            self.driver.beat(name)

    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        name = self._pick(pick)
        if name is not None:
            self.driver.leave(name)

    @rule(pick=PICK, is_there=st.booleans())
    def stream(self, pick: int, is_there: bool) -> None:
        name = self._pick(pick)
        if name is not None:
            self.driver.offer(name) if is_there else self.driver.withdraw(name)

    @rule(pick=PICK)
    def prepare(self, pick: int) -> None:
        name = self._pick(pick)
        if name is not None:
            self.driver.prepare(name)

    @rule(how=st.sampled_from(WAYS), old=st.sampled_from([0, 0, 1, 2]))
    def compute(self, how: str, old: int) -> None:
        """Who is asked prepares, and brings that or what it prepared before."""
        self.driver.call_for_an_assignment()
        for name in sorted(self.driver.clients):
            self.driver.prepare(name)
        for name in sorted(self.driver.clients):
            self.driver.install(name, how, old)

    @rule(pick=PICK, how=st.sampled_from(WAYS), old=PICK)
    def install(self, pick: int, how: str, old: int) -> None:
        """What may be old by now."""
        name = self._pick(pick)
        if name is not None:
            self.driver.install(name, how, old)

    @rule(name=st.sampled_from(["foo", "bar"]))
    def grow(self, name: str) -> None:
        self.driver.grow(name)

    @rule(duration_ms=st.sampled_from([10, 3_000, 9_000, 30_000]))
    def advance(self, duration_ms: int) -> None:
        self.driver.advance(duration_ms)

    @rule()
    def restart(self) -> None:
        self.driver.restart()

    @invariant()
    def sound(self) -> None:
        self.driver.check()

    def teardown(self) -> None:
        self.driver.settle()
        self.driver.restart()


TestLocalMachine = LocalMachine.TestCase
TestLocalMachine.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
