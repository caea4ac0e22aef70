"""The core under any sequence of commands: sound after each, and the same from any compaction.

Members tell the truth, and nobody owns what another does (S2); the state is the replay of its log
(S13), also of one that was compacted anywhere (S14); and all of it settles (L1).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from coordinator.core.state.consumer import consumer_group
from model.commands.consumer import Deadline
from tests.properties.driver_machine import DriverMachine
from tests.support.core_driver import (
    DROPS_TOMBSTONES,
    KEEPS_TOMBSTONES,
    CoreDriver,
    check_replay,
)

MEMBERS = ("a", "b", "c", "i1", "i2", "j1", "j2")
"""Those with a number are static members, two of each instance."""

NAMES = st.sampled_from(
    [
        *[("foo", "bar"), ("foo", "bar"), ("foo",), ("bar", "later"), ()],
        *[("/.*",), ("/(foo|bar)",), ("foo", "/ba."), ("bar", "/(bar|later)"), ("/none",)],
    ]
)
"""What begins with ``/`` is a pattern."""
TOPICS = st.sampled_from(["foo", "bar", "later"])
LOST, PARTIAL, OWNED, FULL = "lost", "partial", "owned", "full"
PICK = st.integers(0, 11)
"""Which of the members there are, whose number is not known before."""


@pytest.fixture(autouse=True, scope="module")
def _give_numbers_back_at_once() -> Iterator[None]:
    """After each change, and not only when they are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consumer_group, "LOOK_CHANGES", -1_000_000)
        yield


class CoreMachine(DriverMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core = CoreDriver()

    @initialize(foo=st.integers(2, 5), bar=st.integers(1, 3))
    def begin(self, foo: int, bar: int) -> None:
        self.core.create_topic("foo", foo)
        self.core.create_topic("bar", bar)
        for name in ("a", "i1"):
            self.core.join(name, ("foo", "bar"))
            self.core.adopt(name)

    def _member(self, pick: int) -> str | None:
        names = sorted(self.core.clients)
        return names[pick % len(names)] if names else None

    @rule(name=st.sampled_from(MEMBERS), names=NAMES)
    def join(self, name: str, names: tuple[str, ...]) -> None:
        """A new member, or one that comes back with its id."""
        self.core.join(name, names)

    @rule(pick=PICK, how=st.sampled_from([LOST, PARTIAL, OWNED, FULL]), adopts=st.booleans())
    def heartbeat(self, pick: int, how: str, adopts: bool) -> None:
        """After an answer that was lost the next request is full."""
        name = self._member(pick)
        if name is None:
            return
        if how == LOST:
            self.core.heartbeat(name, says_owned=True, is_heard=False)
        if how in (LOST, FULL):
            self.core.say_everything(name, self.core.names_of(name))
        else:
            self.core.heartbeat(name, says_owned=how == OWNED)
        if adopts:
            self.core.adopt(name)

    @rule(pick=PICK)
    def acknowledge(self, pick: int) -> None:
        """Give up what is to be given up, and say so."""
        name = self._member(pick)
        if name is not None:
            self.core.revoke(name)
            self.core.heartbeat(name, says_owned=True)

    @rule(pick=PICK)
    def adopt(self, pick: int) -> None:
        name = self._member(pick)
        if name is not None:
            self.core.adopt(name)

    @rule(pick=PICK, names=NAMES)
    def change_names(self, pick: int, names: tuple[str, ...]) -> None:
        name = self._member(pick)
        if name is not None:
            self.core.change_names(name, names)

    @rule(pick=PICK)
    def go_for_a_while(self, pick: int) -> None:
        """A static member leaves and may come back; others leave for good."""
        name = self._member(pick)
        if name is not None:
            self.core.leave(name, for_a_while=True)

    @rule(pick=PICK)
    def stay_away(self, pick: int) -> None:
        """The session of one that has left for a while ends."""
        names = sorted(self.core.away)
        if names:
            self.core.end_session_of_away(names[pick % len(names)])

    @rule(pick=PICK, how=st.sampled_from([None, *Deadline]))
    def go(self, pick: int, how: Deadline | None) -> None:
        """Leave, or be removed by a deadline."""
        name = self._member(pick)
        if name is None:
            return
        if how is None:
            self.core.leave(name)
        else:
            self.core.expire(name, how)

    @rule(name=TOPICS, how=st.sampled_from(["create", "grow", "grow", "delete"]))
    def change_topic(self, name: str, how: str) -> None:
        match how:
            case "create":
                self.core.create_topic(name, 2)
            case "grow":
                self.core.grow_topic(name, 1)
            case _:
                self.core.delete_topic(name)

    @rule(are_late=st.booleans())
    def hurry_with_patterns(self, are_late: bool) -> None:
        """Likewise for what patterns stand for."""
        self.core.are_regexes_late = are_late
        self.core.resolve_late()

    def teardown(self) -> None:
        super().teardown()
        for drops in (KEEPS_TOMBSTONES, DROPS_TOMBSTONES):
            check_replay(self.core, 0, len(self.core.log), drops)


TestCoreMachine = CoreMachine.TestCase
TestCoreMachine.settings = settings(
    max_examples=400,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
