"""Groups of both protocols under any order of steps: sound after each, and all of it settles.

Nobody owns what another does (S2, S22), eager or cooperative or of the consumer protocol; and when
everybody takes the steps that it is told of, all partitions are held after a bounded number of
rounds (L1).
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from model.commands.classic import ClassicDeadline
from tests.properties.driver_machine import DriverMachine
from tests.properties.translator_driver import ANCHOR, TranslatorDriver

CLASSIC = ("k", "l", "m")
CONSUMERS = ("a", "b")
PICK = st.integers(0, 11)
NAMES = st.sampled_from([("foo", "bar"), ("foo", "bar"), ("foo",), ("bar",), ()])
COOPERATIVE_FROM_VERSION = 1


class TranslatorMachine(DriverMachine):
    core: TranslatorDriver

    def __init__(self) -> None:
        super().__init__()
        self.core = TranslatorDriver()

    @initialize(foo=st.integers(2, 6), bar=st.integers(1, 3))
    def begin(self, foo: int, bar: int) -> None:
        self.core.create_topic("foo", foo)
        self.core.create_topic("bar", bar)
        self.core.join(ANCHOR, ("foo", "bar"))
        self.core.adopt(ANCHOR)

    def _classic(self, pick: int) -> str | None:
        names = sorted(self.core.classic)
        return names[pick % len(names)] if names else None

    def _consumer(self, pick: int) -> str:
        names = sorted(self.core.clients)
        return names[pick % len(names)]

    @rule(name=st.sampled_from(CLASSIC), version=st.integers(0, 3), static=st.booleans())
    def start(self, name: str, version: int, static: bool) -> None:
        """A process, which may have run before and is static or not."""
        self.core.start(name, False, version, static)
        self.core.classic_join(name)

    @rule(name=st.sampled_from(CLASSIC), version=st.integers(1, 3), static=st.booleans())
    def start_cooperative(self, name: str, version: int, static: bool) -> None:
        self.core.start(name, True, version, static)
        self.core.classic_join(name)

    @rule(pick=PICK, is_heard=st.booleans())
    def rejoin(self, pick: int, is_heard: bool) -> None:
        name = self._classic(pick)
        if name is not None:
            self.core.classic_join(name, is_heard)

    @rule(pick=PICK, is_heard=st.sampled_from([True, True, True, False]))
    def sync(self, pick: int, is_heard: bool) -> None:
        name = self._classic(pick)
        if name is not None:
            self.core.classic_sync(name, is_heard)

    @rule(pick=PICK)
    def beat(self, pick: int) -> None:
        name = self._classic(pick)
        if name is not None:
            self.core.classic_heartbeat(name)

    @rule(pick=PICK)
    def step(self, pick: int) -> None:
        """What a client does that is told of a rebalance."""
        name = self._classic(pick)
        if name is not None:
            self.core.classic_heartbeat(name)
            if self.core.classic[name].has_to == "join":
                self.core.classic_join(name)
            self.core.classic_sync(name)

    @rule(pick=PICK, names=NAMES)
    def subscribe(self, pick: int, names: tuple[str, ...]) -> None:
        """Another subscription, which takes a join."""
        name = self._classic(pick)
        if name is not None:
            self.core.classic[name].names = names
            self.core.classic_join(name)

    @rule(pick=PICK, expires=st.sampled_from([None, *ClassicDeadline]))
    def go(self, pick: int, expires: ClassicDeadline | None) -> None:
        """By LeaveGroup, or by a deadline."""
        name = self._classic(pick)
        if name is None:
            return
        if expires is None:
            self.core.classic_leave(name)
        else:
            self.core.classic_expire(name, expires)

    @rule(pick=PICK)
    def turn_consumer(self, pick: int) -> None:
        name = self._classic(pick)
        if name is not None:
            self.core.turn_consumer(name)

    @rule(pick=PICK, is_cooperative=st.booleans())
    def turn_classic(self, pick: int, is_cooperative: bool) -> None:
        self.core.turn_classic(self._consumer(pick), is_cooperative)

    @rule(name=st.sampled_from(CONSUMERS), names=NAMES)
    def join(self, name: str, names: tuple[str, ...]) -> None:
        """A member of the consumer protocol, unless it has become a classic one."""
        if name not in self.core.classic:
            self.core.join(name, names)

    @rule(pick=PICK, is_heard=st.booleans(), adopts=st.booleans())
    def heartbeat(self, pick: int, is_heard: bool, adopts: bool) -> None:
        name = self._consumer(pick)
        self.core.heartbeat(name, says_owned=True, is_heard=is_heard)
        self.core.say_everything(name, self.core.names_of(name))
        if adopts:
            self.core.adopt(name)

    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        name = self._consumer(pick)
        if name != ANCHOR:
            self.core.leave(name)

    @rule(name=st.sampled_from(["foo", "bar"]), by=st.integers(1, 2))
    def grow(self, name: str, by: int) -> None:
        self.core.grow_topic(name, by)


TestTranslatorMachine = TranslatorMachine.TestCase
TestTranslatorMachine.settings = settings(
    max_examples=150,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
