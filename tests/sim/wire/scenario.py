"""What happens in a seed: members come, go and change, connections break, and then faults stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from model.caller import INTERNAL, Caller
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.topics import GrowTopic
from model.configs.group_configs import MIGRATION_POLICY
from model.configs.migration_policy import BIDIRECTIONAL, MIGRATION_POLICIES
from model.ids import GroupId, TopicName
from tests.sim.wire.classic import COOPERATIVE, EAGER_PROTOCOLS, Classic, ClassicHabits
from tests.sim.wire.consumer import Consumer, ConsumerHabits
from tests.sim.wire.member import Habits, Member
from tests.sim.wire.world import WireWorld
from tests.support.shadow import Place

GROUP = "g"
ALL_TOPICS = ("foo", "bar")
SUBSCRIPTIONS = (("foo",), ("foo", "bar"), ("foo", "bar"))
INSTANCES = ("i", "j")
PARTITIONS_MAX = 8
PATIENCE_MAX_MS = 12_000
WATCH_EVERY_MS = 20
WATCH_TIMES = 100
CALLER = Caller("User:sim", "sim", "/127.0.0.1")


class Scenario:
    """Does one thing after another, as the theme of the seed weighs them."""

    def __init__(self, world: WireWorld) -> None:
        self.world = world
        self.random = world.random
        self.theme = world.theme
        self._numbers = 0
        self._classic_share = self.random.choice(self.theme.classic)
        self._names = list(self.theme.actions)
        self._weights = list(self.theme.actions.values())
        self._revoke_ms = self.theme.revoke_ms
        self._actions: dict[str, Callable[[], None]] = {
            "start": self.start,
            "stop": self._stop,
            "kill": self._kill,
            "subscribe": self._subscribe,
            "last of a protocol goes": self._last_goes,
            "instance changes its protocol": self._instance_changes,
            "waits for the last": self._wait_for_the_last,
            "grow": self._grow,
            "recreate": self._recreate,
            "policy": self._policy,
            "break while waiting": self._break_one,
            "break and change": self._break_and_change,
            "newcomer breaks": self._newcomer_breaks,
            "cut": self._cut,
            "fall silent": self._fall_silent,
            "pause": self._pause,
            "stall": self._stall,
            "server crash": self._crash,
        }

    def schedule(self) -> None:
        """The first members, and then one thing after another."""
        for _ in range(self.random.randint(*self.theme.members)):
            self._at(self.random.randrange(1_500), self.start)
        self._at(1_500, self._next)
        if self.theme.crowd:
            self._at(1_000, partial(self.world.history.fill_up, self.theme.crowd))

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        def act() -> None:
            if not self.world.faults.is_healed:
                action()

        self.world.time.call_later_ms(delay_ms, act)

    def _next(self) -> None:
        (name,) = self.random.choices(self._names, self._weights)
        self.world.note("action", name)
        self._actions[name]()
        self._at(self.random.choice(self.theme.gaps_ms), self._next)

    # --------------------------------------------------------------------------------- members

    @property
    def living(self) -> list[Member]:
        return [member for member in self.world.members if member.is_live]

    def _choose(self, kind: type[Member] = Member) -> Member | None:
        living = [member for member in self.living if isinstance(member, kind)]
        return self.random.choice(living) if living else None

    def start(
        self,
        is_classic: bool | None = None,
        instance: str | None = None,
        may_be_static: bool = True,
    ) -> None:
        """A new member; one in some is static, and takes the place of its predecessor."""
        rng, world = self.random, self.world
        if len(self.living) > self.theme.members[1] and instance is None:
            return
        self._numbers += 1
        name = f"m{self._numbers}"
        if is_classic is None:
            is_classic = rng.random() < self._classic_share
        topics = rng.choice(SUBSCRIPTIONS)
        if instance is None and may_be_static and rng.random() < self.theme.static:
            instance = rng.choice(INSTANCES)
        if instance is not None:
            # Another subscription of an instance is not noticed while its group rests, as in Kafka.
            topics = ALL_TOPICS
            self._end_instance(instance, is_classic)
        habits = self._choose_habits(is_classic)
        member: Member
        if is_classic:
            member = Classic(world, name, GROUP, topics, instance, habits, self._classic_habits())
        else:
            consumer = ConsumerHabits(
                # Where nothing is parked the door tells nobody again what he was told, as Kafka.
                says_all_again=not world.gateway_settings.gateway_park_ms or rng.random() < 0.5,
                always_says_owned=rng.random() < 0.6,
                says_all=rng.choice((0.0, 0.0, 0.4)),
                leaves_for_good=rng.random() < 0.15,
            )
            member = Consumer(world, name, GROUP, topics, instance, habits, consumer)
        world.members.append(member)
        world.of_member[member.group, member.member_id] = member
        world.note("member", name, type(member).__name__, instance or "", topics)
        world.disturb()
        member.start()

    def _choose_habits(self, is_classic: bool) -> Habits:
        rng = self.random
        settings = self.world.settings
        session_ms = settings.group_consumer_session_timeout_ms
        if is_classic:
            shortest_ms = 3 * max(self.theme.beats_ms)
            session_ms = rng.choice((max(6_000, shortest_ms), 10_000, 20_000))
        pipelines = is_classic and rng.random() < self.theme.pipelines
        return Habits(
            session_ms=session_ms,
            rebalance_ms=rng.choice((4_000, 8_000, 30_000)),
            revoke_ms=rng.choice(self._revoke_ms),
            commit_every_ms=rng.choice((250, 700) if pipelines else (1_500, 4_000)),
            patience_ms=rng.choice((2_000, 3_500)),
            reconnect_ms=rng.choice((0, 0, 1, 30)),
            pipelines=pipelines,
            has_data_connection=rng.random() < 0.4,
        )

    def _classic_habits(self) -> ClassicHabits:
        rng = self.random
        is_cooperative = rng.random() < 0.5
        return ClassicHabits(
            is_cooperative=is_cooperative,
            protocols=(COOPERATIVE,) if is_cooperative else rng.choice(EAGER_PROTOCOLS),
            metadata_version=rng.choice((1, 2, 3, 3)) if is_cooperative else rng.choice((0, 1, 3)),
            join_version=rng.choice((5, 7, 9, 9)),
            sync_version=rng.choice((3, 5)),
            beat_every_ms=rng.choice(self.theme.beats_ms),
            think_ms=rng.choice((0, 0, 200, 1_500)),
            resets_on_sync=rng.random() < 0.5,
            join_patience_ms=rng.choice((2_500, PATIENCE_MAX_MS, PATIENCE_MAX_MS)),
            joins_again_on_the_same=rng.random() < 0.4,
        )

    def _end_instance(self, instance: str, is_classic: bool) -> None:
        """Of what was started under that instance before; or both run, which fences the older.

        One that its group refuses goes on trying, and would take the instance back.
        """
        for member in self.world.members:
            is_gone = member.is_dead or member.is_leaving or member.is_replaced
            if member.instance == instance and not is_gone:
                self.world.note("ends", member.name, instance)
                may_be_replaced = is_classic and isinstance(member, Classic)
                if may_be_replaced and self.world.faults.strikes("instance replaced"):
                    member.is_replaced = True
                elif self.random.random() < 0.7:
                    member.stop()
                else:
                    member.die()

    def _stop(self) -> None:
        self._leave(self._choose())

    def _leave(self, member: Member | None) -> None:
        if member is not None:
            self.world.note("stop", member.name)
            self.world.disturb()
            member.stop()

    def _kill(self) -> None:
        member = self._choose()
        if member is not None:
            self.world.note("kill", member.name)
            self.world.faults.note("member crash")
            self.world.disturb()
            member.die()

    def _subscribe(self) -> None:
        member = self._choose()
        if member is not None and member.instance is None:
            self._resubscribe(member)

    def _resubscribe(self, member: Member) -> None:
        topics = ALL_TOPICS if member.topics == ("foo",) else ("foo",)
        self.world.note("subscribe", member.name, topics)
        self.world.disturb()
        member.subscribe(topics)

    def _pause(self) -> None:
        member = self._choose()
        if member is not None:
            self.world.faults.note("member pause")
            self.world.disturb()
            member.pause(self.random.choice((300, 3_000, 15_000)))

    # -------------------------------------------------------------------------------- conversions

    def _last_goes(self) -> None:
        """All members of one protocol go, and others have something to say about then."""
        consumers = [member for member in self.living if isinstance(member, Consumer)]
        classic = [member for member in self.living if isinstance(member, Classic)]
        if not consumers:
            self.start(is_classic=False)
            return
        if not classic:
            self.start(is_classic=True)
            return
        other = self.random.choice(classic)
        if self.random.random() < 0.3 and other.instance is None:
            self._at(self.random.choice((0, 1, 5, 50)), partial(self._resubscribe_if_live, other))
        if self.random.random() < 0.2:
            self._at(self.random.choice((0, 5, 300)), partial(self.start, is_classic=True))
        for member in consumers:
            member.goes_for_good |= self.random.random() < 0.7
            self._at(self.random.choice((0, 1, 5, 50)), partial(self._leave_if_live, member))

    def _resubscribe_if_live(self, member: Member) -> None:
        if member.is_live:
            self._resubscribe(member)

    def _leave_if_live(self, member: Member) -> None:
        if member.is_live:
            self._leave(member)

    def _instance_changes(self) -> None:
        """A static member stops and is back with the other protocol; others come meanwhile."""
        static = [member for member in self.living if member.instance is not None]
        missing = [name for name in INSTANCES if name not in {each.instance for each in static}]
        if missing and (not static or self.random.random() < 0.7):
            self.start(instance=self.random.choice(missing), is_classic=bool(static))
            return
        consumers = [member for member in static if isinstance(member, Consumer)]
        member = self.random.choice(
            consumers if consumers and self.random.random() < 0.6 else static
        )
        becomes_classic = isinstance(member, Consumer)
        self._leave(member)
        back_ms = self.random.choice((0, 20, 300, 1_000, 1_500, 2_000))
        if self.random.random() < 0.8:
            come = partial(self.start, self.random.random() < 0.8, may_be_static=False)
            self._at(self.random.randint(0, min(back_ms, 200)), come)
        again = partial(self.start, is_classic=becomes_classic, instance=member.instance)
        self._at(back_ms, again)
        others = [each for each in static if each.instance != member.instance]
        if others and self.random.random() < 0.7:
            other = others[0]
            turn = partial(self._turn_about, other)
            self._at(back_ms + self.random.choice((0, 5, 50, 300, 600)), turn)

    def _wait_for_the_last(self) -> None:
        """A classic member waits for what the last of the others has; they go, and one is back."""
        consumers = [member for member in self.living if isinstance(member, Consumer)]
        static = [
            member
            for member in self.living
            if isinstance(member, Classic) and member.instance is not None
        ]
        if not consumers or not static:
            if not consumers:
                self.start(is_classic=False, may_be_static=False)
            if not static:
                self.start(is_classic=True, instance=self.random.choice(INSTANCES))
            return
        for member in consumers:
            member.is_busy = member.goes_for_good = True
        self.start(is_classic=True, may_be_static=False)
        go_ms = self.random.choice((300, 800, 1_500))
        for member in consumers:
            self._at(go_ms, partial(self._leave_if_live, member))
        turn = partial(self._turn_about, self.random.choice(static))
        self._at(go_ms + self.random.choice((5, 30, 100, 300)), turn)

    def _turn_about(self, member: Member) -> None:
        """A static member moves in the opposite direction."""
        if member.is_live:
            self._leave(member)
            again = partial(
                self.start, is_classic=isinstance(member, Consumer), instance=member.instance
            )
            self._at(self.random.choice((0, 5, 50)), again)

    def _policy(self) -> None:
        policy = self.random.choice((*MIGRATION_POLICIES, BIDIRECTIONAL))
        change = ConfigChange(MIGRATION_POLICY, ConfigOperation.SET, policy)
        self.world.disturb()
        self.world.admin(AlterGroupConfigs(CALLER, GroupId(GROUP), (change,)))

    # ------------------------------------------------------------------------------------ topics

    def _grow(self) -> None:
        name = self.random.choice(ALL_TOPICS)
        count = self.world.partitions_of((name,)).get(name, PARTITIONS_MAX) + 1
        if self.world.is_up and count <= PARTITIONS_MAX:
            self.world.disturb()
            self.world.admin(GrowTopic(INTERNAL, TopicName(name), count))

    def _recreate(self) -> None:
        if self.world.is_up and self.world.partitions_of(("foo",)):
            self.world.disturb()
            self.world.history.recreate("foo", self.random.randint(1, 5), (GROUP, "simple"))
            if self.random.random() < 0.5:
                self._at(self.random.choice((0, 5, 50)), partial(self.start, is_classic=False))

    # ------------------------------------------------------------------------------ connections

    def _break(self) -> Member | None:
        """A client gives up the connection on which it waits, and comes by another."""
        waiting = [each for each in self.living if each.waiting_link is not None]
        if not waiting or not self.world.faults.is_on("half-open while a request waits"):
            return None
        if self.random.random() < 0.5:
            # One that waits for partitions is told of them soon.
            fewest = min(len(each.owned) for each in waiting)
            waiting = [each for each in waiting if len(each.owned) == fewest]
        member = self.random.choice(waiting)
        link = member.waiting_link
        assert link is not None, "it was looked for"
        self.world.faults.note("half-open while a request waits")
        link.break_half_open()
        return member

    def _break_longest_parked(self) -> Member | None:
        """Of a client that rests, so that its heartbeat has long to wait."""
        resting = [
            member
            for member in self.living
            if isinstance(member, Consumer) and member.waiting_link is not None
        ]
        if not resting or self.random.random() < 0.2:
            return self._break()
        member = max(resting, key=lambda each: each.interval_ms)
        self._break_if_it_waits(member)
        return member

    def _break_one(self) -> None:
        self._break()

    def _break_and_change(self) -> None:
        """The same while the group changes: somebody comes, goes or subscribes otherwise."""
        member = self._break_longest_parked()
        at_ms = self.random.choice((5, 20, 60, 200))
        match self.random.randrange(7):
            case 0 | 6 if member is not None and member.instance is None:
                self._at(at_ms, partial(self._resubscribe_if_live, member))
            case 1 | 2 | 3 | 4:
                # It gets something, and is to give it up again, before its old heartbeat ends.
                if isinstance(member, Consumer) and self.random.random() < 0.7:
                    member.is_busy = True
                self._at(at_ms, partial(self._another_goes, member))
                self._at(at_ms + self.random.choice((100, 200, 400, 700)), self.start)
            case _:
                self._at(at_ms, self.random.choice((self.start, self._stop, self._subscribe)))

    def _newcomer_breaks(self) -> None:
        """Who waits for what others are slow to give up breaks, gets it, and is to give some up."""
        for member in self.random.sample(self.living, max(len(self.living) - 3, 0)):
            self._leave(member)
        self._at(self.random.choice((500, 4_000, 6_000)), self._let_newcomer_break)

    def _let_newcomer_break(self) -> None:
        before = self.living
        for member in before:
            if isinstance(member, Consumer) and self.random.random() < 0.9:
                member.is_busy = True
        self.start(is_classic=False)
        for newcomer in self.living:
            if newcomer not in before and isinstance(newcomer, Consumer):
                break_ms = self.random.choice((1_500, 1_800, 2_300, 2_700, 3_200))
                self._at(break_ms, partial(self._break_if_it_waits, newcomer))
                for member in before:
                    if isinstance(member, Consumer):
                        self._at(break_ms + self.random.choice((10, 40, 100)), member.hurry)
                come = partial(self.start, is_classic=False)
                self._at(break_ms + self.random.choice((200, 500, 800, 1_200, 1_600)), come)

    def _break_if_it_waits(self, member: Member) -> None:
        link = member.waiting_link
        is_on = self.world.faults.is_on("half-open while a request waits")
        if link is not None and is_on:
            self.world.faults.note("half-open while a request waits")
            link.break_half_open()
            if self.random.random() < 0.7:
                self._when_it_gains(member, frozenset(member.owned), WATCH_TIMES)

    def _when_it_gains(self, member: Member, had: frozenset[Place], times: int) -> None:
        """Somebody comes as soon as it has got something, which it is slow to give up again."""
        if member.owned > had:
            if isinstance(member, Consumer):
                member.is_busy = True
            self.start(is_classic=False)
        elif times:
            self._at(WATCH_EVERY_MS, partial(self._when_it_gains, member, had, times - 1))

    def _another_goes(self, member: Member | None) -> None:
        others = [each for each in self.living if each is not member]
        self._leave(self.random.choice(others) if others else None)

    def _cut(self) -> None:
        member = self._choose()
        link = None if member is None else member.open_link
        if link is not None and self.world.faults.is_on("connection cut"):
            link.cut()

    def _fall_silent(self) -> None:
        member = self._choose()
        link = None if member is None else member.open_link
        if link is not None and self.world.faults.is_on("answer lost"):
            link.go_silent()

    # ------------------------------------------------------------------------------------ server

    def _stall(self) -> None:
        if self.world.is_up and self.world.faults.is_on("process stall"):
            self.world.disturb()
            self.world.stall_server(self.random.choice((100, 2_000, 8_000)))

    def _crash(self) -> None:
        world = self.world
        if world.is_up and world.crashes_left and world.faults.is_on("server crash"):
            world.crashes_left -= 1
            world.crash_server()
