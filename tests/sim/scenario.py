"""What happens in a seed: clients come and go, topics change, faults strike, and then they stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from model.caller import INTERNAL
from model.commands.classic import ClassicHeartbeat, SyncGroup
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    LeaveGroup,
    LeavingMember,
)
from model.commands.freezes import ResumeGroup
from model.commands.groups import ConsumerGroupDescribe, DeleteGroup
from model.commands.offsets import (
    DeleteOffsets,
    OffsetCommit,
    OffsetFetch,
    TopicOffsets,
    TopicToFetch,
)
from model.commands.topics import DeleteTopic, GrowTopic
from model.configs.group_configs import MIGRATION_POLICY
from model.configs.migration_policy import BIDIRECTIONAL, MIGRATION_POLICIES
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from tests.sim.clients.classic_client import ClassicClient, choose_classic_habits
from tests.sim.clients.client import CALLER, Client, Habits, choose_habits
from tests.sim.clients.session_client import SessionClient
from tests.sim.clients.wire_client import WireClient
from tests.sim.freezes import Freezes
from tests.sim.removals import Removals
from tests.sim.world import GROUPS, SIMPLE_GROUP, TOPICS, World

SAFETY_MS = 45_000
STARTING_MS = 8_000
MEMBERS_MIN = 3
PATTERNS = (("/.*",), ("/(foo|later)",), ("foo", "/ba."), ("bar", "/(bar|later)"), ("/none",))
OFTEN = {
    "settings changed": (3, 7),
    "deletion": (5, 12),
    "transaction coordinator moved": (1, 4),
    "group converted": (4, 10),
}
CLASSIC_SHARES = {"alpha": (0.0, 0.0, 0.3), "beta": (0.0, 0.4, 0.4, 0.7, 1.0)}
"""How many of the members of each group are of the classic protocol."""
STATIC = 0.4
"""How many of the members are static."""


class Scenario:
    """Schedules everything of the safety phase."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.crashes_left = 4
        self._numbers = dict.fromkeys(GROUPS, 0)
        self.classic = {group: self.random.choice(CLASSIC_SHARES[group]) for group in GROUPS}
        world.on_died = self._die

    def schedule(self) -> None:
        """Fill the timetable of the safety phase."""
        rng = self.random
        for group in GROUPS:
            for _ in range(rng.randint(2, 4)):
                self._at(rng.randrange(STARTING_MS), partial(self.start_client, group))
        self._some(2, 5, self._leave)
        self._some(3, 8, self._leave_for_a_while)
        self._some(1, 4, self._change_names)
        self._some(1, 4, self._change_topics)
        self._some(8, 16, self._stray)
        self._some(12, 22, self._look)
        self._some(1, 3, self._empty_group, chance=0.7)
        self._some(4, 8, self._commit_simple)
        for _ in range(rng.choice((0, 1, 2, 3))):
            self.world.coordinator.start_producer()
        for kind, action in (
            ("member crash", self._crash_member),
            ("member pause", self._pause_member),
            ("server crash", self._crash_server),
            ("process stall", self._stall),
            ("clock jump", self._jump),
            ("clock freeze", self._freeze),
            ("transaction coordinator moved", self._move_coordinator),
            ("settings changed", self._configure),
            ("deletion", self._delete),
            ("group converted", self._convert),
        ):
            if kind in self.world.faults.on:
                self._some(*OFTEN.get(kind, (2, 4)), action)
        if "zombie" in self.world.faults.on:
            self._some(4, 12, self._zombie)
        Freezes(self.world, self._at).schedule(SAFETY_MS)
        Removals(self.world, self._at).schedule(SAFETY_MS)

    def _at(self, at_ms: int, action: Callable[[], None]) -> None:
        self.world.time.call_later_ms(at_ms, action)

    def _some(self, least: int, most: int, action: Callable[[], None], chance: float = 1.0) -> None:
        if self.random.random() < chance:
            for _ in range(self.random.randint(least, most)):
                self._at(self.random.randrange(SAFETY_MS), partial(self._unless_healed, action))

    def _unless_healed(self, action: Callable[[], None]) -> None:
        if not self.world.faults.is_healed:
            action()

    # --------------------------------------------------------------------------------- clients

    def start_client(
        self,
        group: str,
        instance_id: InstanceId | None = None,
        is_classic: bool | None = None,
    ) -> None:
        """A new member of the group; some are static, and ``instance_id`` is one that went."""
        world = self.world
        self._numbers[group] += 1
        never = self.random.random() < world.faults.probability["unacknowledged revocation"]
        habits = choose_habits(self.random, never)
        name = f"{group}-{self._numbers[group]}"
        if is_classic is None:
            is_classic = self.random.random() < self.classic[group]
        if is_classic:
            client = self._make_classic(group, name, habits)
        else:
            kind = WireClient if self.random.random() < 0.6 else SessionClient
            client = kind(world, group, name, self._names(), habits)
        client.instance_id = instance_id
        if instance_id is None and self.random.random() < STATIC:
            client.instance_id = InstanceId(f"i-{name}")
        world.clients.append(client)
        world.by_member[client.group_id, client.member_id] = client
        world.note("client", name, type(client).__name__, client.names)
        client.start()

    def _make_classic(self, group: str, name: str, habits: Habits) -> Client:
        talks_nonsense = self.random.random() < self.world.faults.probability["nonsense said"]
        classic_habits = choose_classic_habits(self.random, talks_nonsense)
        names = tuple(topic for topic in self._names() if not topic.startswith("/"))
        return ClassicClient(self.world, group, name, names, habits, classic_habits)

    def _convert(self) -> None:
        """Members of the one protocol come, or all of the other go, so that the group flips."""
        world, group = self.world, self.random.choice(GROUPS)
        here = [each for each in self._living() if each.group_id == group and not each.is_out]
        classic = [each for each in here if isinstance(each, ClassicClient)]
        others = [each for each in here if not isinstance(each, ClassicClient)]
        world.faults.note("group converted")
        if not classic:
            self.start_client(group, is_classic=True)
        elif not others:
            self.start_client(group, is_classic=False)
        else:
            for client in others:
                if self.random.random() < 0.8:
                    client.leave(self.random.choice((None, 500, 6_000)))
                else:
                    client.crash()

    def _die(self, client: Client) -> None:
        """A client dies by itself; somebody comes in its place."""
        self.world.note("dies", client.member_id)
        client.crash()
        if client.instance_id is not None:
            self._start_in_its_place(client)
        elif self.random.random() < 0.7:
            start = partial(self.start_client, client.group_id)
            self._at(self.random.randrange(4_000), partial(self._unless_healed, start))

    def _names(self) -> tuple[str, ...]:
        """Mostly foo, so that there is something to move; rarely nothing at all."""
        if self.random.random() < 0.25:
            return self.random.choice(PATTERNS)
        return self.random.choice(
            (("foo",), ("foo",), ("foo", "bar"), ("bar", "baz"), ("foo", "later"), ())
        )

    def _living(self) -> list[Client]:
        return [client for client in self.world.clients if not client.is_dead]

    def _member(self) -> Client | None:
        living = [client for client in self._living() if not client.is_out]
        return self.random.choice(living) if living else None

    def _leave(self) -> None:
        client = self._member()
        if client is not None:
            self.world.note("leave", client.member_id)
            returns_after_ms = self.random.choice((None, 100, 4_000))
            client.leave(returns_after_ms)
            if client.instance_id is not None and returns_after_ms is None:
                self._start_in_its_place(client)
            elif self.random.random() < 0.5:
                self.start_client(client.group_id)

    def _leave_for_a_while(self) -> None:
        """A static member restarts."""
        static = [
            client
            for client in self._living()
            if client.instance_id is not None and not client.is_out
        ]
        if static:
            client = self.random.choice(static)
            self.world.note("restart", client.member_id)
            client.leave(self.random.choice((20, 300, 3_000)))

    def _start_in_its_place(self, client: Client) -> None:
        """A new client that is the same instance, as a new process would be."""
        start = partial(self.start_client, client.group_id, client.instance_id)
        self._at(self.random.choice((1, 500, 6_000)), partial(self._unless_healed, start))

    def _empty_group(self) -> None:
        """All members of one group leave."""
        group = self.random.choice(GROUPS)
        for client in self._living():
            if client.group_id == group:
                client.leave(self.random.choice((None, 3_000, 8_000)))

    def _change_names(self) -> None:
        client = self._member()
        if client is not None:
            names = self._names()
            if isinstance(client, ClassicClient):
                names = tuple(topic for topic in names if not topic.startswith("/"))
            self.world.note("names", client.member_id, names)
            client.change_names(names)

    def fill_up(self) -> None:
        """Somebody must be left to send messages."""
        if len([client for client in self._living() if not client.is_out]) < MEMBERS_MIN:
            self.start_client(self.random.choice(GROUPS))

    def _crash_member(self) -> None:
        client = self._member()
        if client is not None:
            self.world.faults.note("member crash")
            self.world.note("member crash", client.member_id)
            client.crash()
            if client.instance_id is not None:
                self._start_in_its_place(client)
            elif self.random.random() < 0.7:
                start = partial(self.start_client, client.group_id)
                self._at(self.random.randrange(8_000), partial(self._unless_healed, start))

    def _pause_member(self) -> None:
        client = self._member()
        if client is not None:
            self.world.faults.note("member pause")
            pause_ms = self.random.choice((300, 4_000, 30_000))
            self.world.note("member pause", client.member_id, pause_ms)
            client.pause(pause_ms)

    def _zombie(self) -> None:
        """Something that was a member speaks at an epoch that must be fenced."""
        client = self._member()
        if client is None or not self.world.is_up:
            return
        runtime = self.world.runtime
        group = runtime._shard_of(client.group_id).consumer_groups.get(client.group_id)
        member = None if group is None else group.member(client.member_id)
        if member is None:
            return
        below = min(member.previous_member_epoch, member.member_epoch) - 1
        epoch = below if below > 0 and self.random.random() < 0.5 else member.member_epoch + 3
        self.world.faults.note("zombie")
        self.world.admin(ConsumerGroupHeartbeat(CALLER, client.group_id, client.member_id, epoch))
        held = [(topic, p) for topic, p in sorted(client.owned) if topic in self.world.topic_names]
        if held and below > 0:
            partition = held[0][1]
            self.world.admin(self._commit(client.group_id, client.member_id, below, partition))

    # ---------------------------------------------------------------------------------- server

    def _crash_server(self) -> None:
        if self.world.is_up:
            self.world.crash_server()

    def maybe_crash(self) -> None:
        """Between any two turns, more likely while something is not durable."""
        world = self.world
        if not world.is_up or not self.crashes_left or not world.faults.is_on("server crash"):
            return
        likelihood = 0.002 if world.disk.unsynced else 0.0002
        if self.random.random() < likelihood:
            self.crashes_left -= 1
            world.crash_server()

    def _stall(self) -> None:
        self.world.stall_server(self.random.choice((100, 2_000, 15_000)))

    def _jump(self) -> None:
        self.world.faults.note("clock jump")
        self.world.time.wall_offset_ms += self.random.choice((-3_600_000, -5_000, 3_600_000))

    def _freeze(self) -> None:
        self.world.faults.note("clock freeze")
        self.world.time.freeze_wall(self.random.choice((500, 10_000)))

    def _move_coordinator(self) -> None:
        coordinator = self.world.coordinator
        coordinator.move()
        for producer in coordinator.producers:
            late = partial(coordinator.send_from_the_past, producer)
            for _ in range(4):
                self._at(self.random.randrange(8_000), partial(self._unless_healed, late))

    # ------------------------------------------------------------------------ topics and tools

    def _configure(self) -> None:
        """An administrator changes what the members of a group must obey."""
        world = self.world
        session_ms = world.settings.group_consumer_session_timeout_ms
        name, text = self.random.choice(
            (
                ("consumer.session.timeout.ms", str(2 * session_ms)),
                ("consumer.session.timeout.ms", str(session_ms + 1_500)),
                ("consumer.session.timeout.ms", None),
                ("consumer.heartbeat.interval.ms", self.random.choice(("1000", "3000", None))),
                ("consumer.assignors", self.random.choice(("range", "uniform", "range,uniform"))),
                ("consumer.assignors", None),
                ("consumer.assignment.interval.ms", self.random.choice(("0", "2000", None))),
                ("offsets.retention.minutes", self.random.choice(("50", "1", None))),
                ("consumer.max.size", self.random.choice(("4", None))),
                (MIGRATION_POLICY, self.random.choice((*MIGRATION_POLICIES, None))),
                (MIGRATION_POLICY, self.random.choice((*MIGRATION_POLICIES, None))),
            )
        )
        world.faults.note("settings changed")
        operation = ConfigOperation.DELETE if text is None else ConfigOperation.SET
        change = ConfigChange(name, operation, text)
        world.admin(AlterGroupConfigs(CALLER, self._group(), (change,)))

    @property
    def has_classic_members(self) -> bool:
        """Whether there is one left."""
        return any(isinstance(client, ClassicClient) for client in self._living())

    def let_all_in(self, group: str) -> None:
        """No member is refused by the settings of its group any more, or for want of room."""
        here = [each for each in self._living() if each.group_id == group and not each.is_out]
        for client in here[self.world.settings.group_max_size - 1 :]:
            client.leave(None)
        # A record has the one protocol that was chosen, and after a start that alone is known.
        for client in here:
            if isinstance(client, ClassicClient) and not client.is_out:
                client.run(client.join_again)
        changes = (
            ConfigChange("consumer.assignors", ConfigOperation.DELETE),
            ConfigChange("consumer.max.size", ConfigOperation.DELETE),
            ConfigChange(MIGRATION_POLICY, ConfigOperation.SET, BIDIRECTIONAL),
        )
        self.world.admin(AlterGroupConfigs(CALLER, GroupId(group), changes))
        if self.world.faults.happened["group frozen"]:
            self.world.admin(ResumeGroup(CALLER, GroupId(group)))

    def _delete(self) -> None:
        """An administrator deletes a group, or offsets of one."""
        world, group_id = self.world, self._group()
        world.faults.note("deletion")
        if self.random.random() < 0.5:
            world.admin(DeleteGroup(CALLER, group_id))
        else:
            topic = TopicName(self.random.choice(("foo", "bar", "baz")))
            world.admin(DeleteOffsets(CALLER, group_id, ((topic, (0, 1, 2)),)))

    def _commit_simple(self) -> None:
        """Somebody without a group commits, where transactions commit too."""
        command = self._commit(GroupId(SIMPLE_GROUP), MemberId(""), None, self.random.randrange(3))
        self.world.admin(command)

    def _change_topics(self) -> None:
        world = self.world
        image = world.runtime.image.by_name
        name = self.random.choice((*TOPICS, "later"))
        topic = image.get(TopicName(name))
        if topic is None:
            world.create_topic(name, self.random.randint(1, 6))
        elif self.random.random() < 0.6:
            world.admin(GrowTopic(INTERNAL, topic.name, topic.partitions + 1))
        else:
            world.admin(DeleteTopic(INTERNAL, topic.name))
            create = partial(world.create_topic, name, 3)
            self._at(self.random.choice((0, 5, 3_000)), partial(self._unless_healed, create))

    def _group(self) -> GroupId:
        return GroupId(self.random.choice((*GROUPS, *GROUPS, SIMPLE_GROUP)))

    def _commit(
        self, group_id: GroupId, member_id: MemberId, epoch: int | None, partition: int
    ) -> OffsetCommit:
        offsets = make_offset_columns([(partition, self.world.next_offset(), -1, "")])
        topic = self.world.runtime.image.by_name.get(TopicName("foo"))
        topic_id = None if topic is None else topic.topic_id
        topics = (TopicOffsets(TopicName("foo"), topic_id, offsets),)
        return OffsetCommit(CALLER, group_id, member_id, epoch, topics)

    def _stray(self) -> None:
        """A request of nobody in particular."""
        group_id, member_id = self._group(), MemberId("stray")
        match self.random.randrange(7):
            case 0:
                self.world.admin(ConsumerGroupHeartbeat(CALLER, group_id, member_id, 3))
            case 1:
                self.world.admin(ConsumerGroupLeave(CALLER, group_id, member_id))
            case 2:
                self.world.admin(self._commit(group_id, member_id, 3, 0))
            case 3:
                self.world.admin(ClassicHeartbeat(CALLER, group_id, member_id, 3))
            case 4:
                self.world.admin(SyncGroup(CALLER, group_id, member_id, 3))
            case 5:
                self.world.admin(LeaveGroup(CALLER, group_id, (LeavingMember(member_id),)))
            case _:
                self.world.admin(self._commit(group_id, MemberId(""), None, 1))

    def _look(self) -> None:
        """A tool looks."""
        group_id = self._group()
        self.world.admin(ConsumerGroupDescribe(CALLER, (group_id,)))
        wanted = TopicToFetch(TopicName("foo"), None, (0, 1, 2, 3, 4))
        fetch = OffsetFetch(CALLER, group_id, (wanted,), require_stable=self.random.random() < 0.6)
        self.world.admin(fetch)
