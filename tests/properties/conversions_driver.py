"""Groups that change their type, on the real runtime, with members that do only what they are told.

A process speaks either protocol, is static or not, and may be replaced by one of the other; nobody
joins again because a server restarted. What each would be told next is asked of the core, of the
shard that is live and of one that is loaded from the log at that moment, and changes neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import handle
from coordinator.runtime.api import Answer
from coordinator.runtime.loading.shard_loader import load_shard
from model.commands.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    LeaveGroup,
    LeavingMember,
)
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupError,
    GroupIdNotFound,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import TopicPartitions
from model.now import Now
from model.responses.classic import ClassicHeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from muster.assignors import embedded
from tests.scenarios.server import ScenarioServer
from tests.support.virtual.server import CALLER, Pending

G: Final = GroupId("g")
FOO: Final = TopicName("foo")
SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 20_000
BEAT_MS: Final = 3_000
ROUNDS: Final = 40
"""Of heartbeats: longer than the sessions of members without a process, and what follows."""

EAGER, COOPERATIVE = "range", "cooperative-sticky"
JOIN, SYNC, REST = "join", "sync", "rest"
ALL_IS_WELL: Final = "all is well"


@dataclass
class Process:
    """What a process believes. ``has_to`` join, sync or rest, where it speaks classic."""

    name: str
    is_classic: bool
    instance_id: InstanceId | None
    member_id: MemberId | None = None
    generation: int = -1
    """Or the member epoch; 0 for one that is to join."""
    owned: set[int] = field(default_factory=set)
    has_to: str = JOIN
    assigns: tuple[MemberAssignment, ...] = ()
    waiting: Pending | None = None
    is_dead: bool = False
    may_be_unknown: bool = False
    """It has not joined since its server started: a rebalance is in no record."""
    given: set[MemberId] = field(default_factory=set)
    """The ids that it may have been given since its server started."""

    def lose(self, keeps_id: bool) -> None:
        """It is told that it is nobody, or of another generation."""
        self.owned, self.has_to = set(), JOIN
        self.generation = -1 if self.is_classic else 0
        if self.is_classic and not keeps_id:
            self.member_id = None


Asked: TypeAlias = ConsumerGroupHeartbeat | JoinGroup | SyncGroup | ClassicHeartbeat
Told: TypeAlias = tuple[str, ...]


class ConversionsDriver:
    """One group of one topic, and a process for each name."""

    def __init__(self, partitions: int, protocol: str) -> None:
        settings = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
        self.server = ScenarioServer(settings)
        self.server.create(FOO, partitions)
        self.all = set(range(partitions))
        self.processes: dict[str, Process] = {}
        self._protocol = protocol
        self._ids = 0
        self._was_mixed = False
        self._downgraded_at: int | None = None
        self._is_settling = False

    def alive(self) -> Iterator[Process]:
        """Those that are still there."""
        return (each for each in self.processes.values() if not each.is_dead)

    # ----------------------------------------------------------------------------- processes

    def start(self, name: str, is_classic: bool, is_static: bool, settles: bool = True) -> None:
        """A process takes the place of the one that had the name."""
        self.end(name, for_good=False, settles=settles)
        instance_id = InstanceId(name) if is_static else None
        process = Process(name, is_classic, instance_id)
        if not is_classic:
            process.member_id, process.generation = self._make_id(name), 0
        self.processes[name] = process
        self.step(name, settles)

    def end(self, name: str, for_good: bool, settles: bool = True) -> None:
        """It says so where its client does: a static one of the classic protocol never does."""
        process = self.processes.pop(name, None)
        if process is None or process.is_dead or process.member_id is None:
            return
        member_id, instance_id = process.member_id, process.instance_id
        if for_good or (process.is_classic and instance_id is None):
            leaving = LeavingMember(None if instance_id is not None else member_id, instance_id)
            self.server.submit(LeaveGroup(CALLER, G, (leaving,)))
        elif not process.is_classic:
            epoch = -1 if instance_id is None else -2
            self.server.submit(ConsumerGroupLeave(CALLER, G, member_id, epoch, instance_id))
        if settles:
            self._listen()

    def _make_id(self, name: str) -> MemberId:
        self._ids += 1
        return MemberId(f"{name}{self._ids}")

    def crash(self, survives: bool) -> None:
        """The server dies and another one starts; with what was written and not synced, or not."""
        self.server.crash(self.server.store.unsynced if survives else 0)
        for process in self.processes.values():
            process.waiting = None
            process.given.clear()
            process.may_be_unknown = True
        self.server.start()
        self._listen()

    # --------------------------------------------------------------------------------- steps

    def step(self, name: str, settles: bool = True) -> None:
        """What the process does next, unless it waits for an answer."""
        process = self.processes.get(name)
        if process is not None and not process.is_dead and process.waiting is None:
            if process.is_classic and process.has_to == JOIN and self._protocol == EAGER:
                process.owned = set()
            command = self.make_next(process)
            process.waiting = self.server.submit(command)
            if isinstance(command, JoinGroup):
                process.given.add(command.new_member_id)
        if settles:
            self._listen()

    def make_next(self, process: Process) -> Asked:
        """The command of its next step."""
        if not process.is_classic:
            return self._make_consumer_heartbeat(process)
        match process.has_to:
            case "join":
                return self.make_join(process)
            case "sync":
                return self.make_sync(process)
            case _:
                return self.make_beat(process)

    def _make_consumer_heartbeat(self, process: Process) -> ConsumerGroupHeartbeat:
        assert process.member_id is not None
        topic_id = self.server.topic(FOO)
        owned = (TopicPartitions(topic_id, tuple(sorted(process.owned))),) if process.owned else ()
        return ConsumerGroupHeartbeat(
            CALLER,
            G,
            process.member_id,
            process.generation,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=(FOO,),
            owned=owned,
            instance_id=process.instance_id,
        )

    def make_join(self, process: Process) -> JoinGroup:
        """By a client of a version that need not come again with its id."""
        owned = [(str(FOO), partition) for partition in sorted(process.owned)]
        subscription = embedded.make_subscription((FOO,), None, owned, process.generation)
        said = embedded.encode_subscription(subscription, 3)
        return JoinGroup(
            CALLER,
            G,
            process.member_id,
            self._make_id(process.name) if process.member_id is None else process.member_id,
            SESSION_MS,
            REBALANCE_MS,
            "consumer",
            (JoinProtocol(self._protocol, said),),
            process.instance_id,
            requires_member_id=False,
            may_skip_assignment=True,
        )

    @staticmethod
    def make_sync(process: Process) -> SyncGroup:
        """With what it assigns, if it leads."""
        assert process.member_id is not None
        return SyncGroup(
            CALLER, G, process.member_id, process.generation, process.assigns, process.instance_id
        )

    @staticmethod
    def make_beat(process: Process) -> ClassicHeartbeat:
        """Of the generation that it knows."""
        assert process.member_id is not None
        return ClassicHeartbeat(
            CALLER, G, process.member_id, process.generation, process.instance_id
        )

    def _listen(self) -> None:
        """Answers come until none does."""
        self.server.settle()
        for process in self.processes.values():
            waiting = process.waiting
            if waiting is not None and waiting.is_answered:
                process.waiting = None
                self._hear(process, waiting.answer)
        if not self._is_settling:
            self.check()

    def _hear(self, process: Process, answer: Answer) -> None:
        match answer:
            case GroupError():
                self._hear_error(process, answer)
            case JoinGroupResponse():
                process.member_id, process.generation = answer.member_id, answer.generation
                leads = answer.leader == answer.member_id and not answer.skip_assignment
                process.assigns = compute_shares(answer, self.all) if leads else ()
                process.has_to, process.may_be_unknown = SYNC, False
            case SyncGroupResponse():
                given = _decode(answer.assignment)
                has_revoked = bool(process.owned - given)
                self._gain(process, given)
                process.has_to = JOIN if has_revoked else REST
            case ConsumerGroupHeartbeatResponse():
                process.generation = answer.member_epoch
                if answer.assignment is not None:
                    self._gain(
                        process, {p for topic in answer.assignment for p in topic.partitions}
                    )
            case _:
                assert isinstance(answer, ClassicHeartbeatResponse), repr(answer)

    def _hear_error(self, process: Process, error: GroupError) -> None:
        match error:
            case RebalanceInProgress():
                process.has_to = JOIN
            case IllegalGeneration():
                process.lose(keeps_id=True)
            case UnknownMemberId() | FencedMemberEpoch():
                # The processes that are there are heard from: none is to be put out.
                is_known = not (self._is_settling or process.may_be_unknown)
                assert not is_known, f"{process.name} is told {error!r}"
                process.lose(keeps_id=False)
            case FencedInstanceId() | GroupIdNotFound():
                process.owned, process.is_dead = set(), True
            case _:
                assert isinstance(error, UnreleasedInstanceId), repr(error)

    def _gain(self, process: Process, given: set[int]) -> None:
        """Nobody else believes to own what it is told."""
        for other in self.alive():
            both = other.owned & given
            assert other is process or not both, f"S2: {both} of {other.name} and {process.name}"
        process.owned = given

    # ------------------------------------------------------------------------------- the laws

    def check(self) -> None:
        """The live shard and one loaded from the log say the same, and say the truth."""
        live, loaded = self.server.runtime.shards[self._partition], self._load()
        self._check_truth(live, "live")
        self._check_truth(loaded, "loaded")
        self._check_no_ghosts(live)
        self._note_downgrade(live)
        group = live.classic_group(G)
        if group is not None and group.generation == self._downgraded_at:
            assert _describe(live) == _describe(loaded), (
                f"{_describe(live)}, reloaded {_describe(loaded)}"
            )
            _check_once_each(loaded)
        if _describe(live) != _describe(loaded):
            # No other rebalance of a classic group is in a record.
            return
        for process in self.alive():
            if self._is_in_both(process, live, loaded):
                told = [self._ask_all(shard, process) for shard in (live, loaded)]
                assert told[0] == told[1], f"{process.name} is told {told[0]}, reloaded {told[1]}"

    def _note_downgrade(self, live: Shard) -> None:
        """Since the look before a group that had classic members is a classic one, and waits."""
        consumer, classic = live.consumer_groups.get(G), live.classic_group(G)
        is_waiting = classic is not None and classic.state is ClassicGroupState.PREPARING_REBALANCE
        if classic is not None and is_waiting and self._was_mixed:
            self._downgraded_at = classic.generation
        elif classic is None or classic.generation != self._downgraded_at:
            self._downgraded_at = None
        self._was_mixed = consumer is not None and consumer.classic_member_count > 0

    @property
    def _partition(self) -> int:
        return self.server.runtime.partition_of(G)

    def _load(self) -> Shard:
        live = self.server.runtime.shards[self._partition]
        loaded = Shard(live.partition, live.settings, live.image)
        load_shard(self.server.store, loaded)
        return loaded

    @staticmethod
    def _is_in_both(process: Process, live: Shard, loaded: Shard) -> bool:
        """Who has joined a group that rebalances is in no record."""
        groups = (live.classic_group(G), loaded.classic_group(G))
        return all(group is None or process.member_id in group.members for group in groups)

    def _ask_all(self, shard: Shard, process: Process) -> tuple[Told, ...]:
        if process.member_id is None or not process.is_classic:
            return (self._ask(shard, self.make_next(process)),)
        commands = self.make_beat(process), self.make_join(process), self.make_sync(process)
        return tuple(self._ask(shard, command) for command in commands)

    def _ask(self, shard: Shard, command: Asked) -> Told:
        """What the command would come to, in words; nothing comes of it."""
        try:
            outcome = handle(shard, command, self._now())
        except GroupError as error:
            return (type(error).__name__,)
        if outcome.wait is not None:
            return (f"waits to {outcome.wait.phase.value}",)
        if outcome.then is not None:
            return ("its step",)
        return _show(outcome)

    def _now(self) -> Now:
        scheduler = self.server.scheduler
        return Now(scheduler.wall_ms(), scheduler.monotonic_ms())

    def _check_no_ghosts(self, live: Shard) -> None:
        """A process whose requests are all answered, or wait still, is one member."""
        members = _list_members(live)
        for process in self.alive():
            found = process.given & members
            assert len(found) <= 1, f"{process.name} is {found}"

    def _check_truth(self, shard: Shard, which: str) -> None:
        """Who hears that all is well was told what it has, and where all do, all is read."""
        processes = list(self.alive())
        for process in processes:
            if process.is_classic and self.is_well(shard, process):
                has = self._ask(shard, self.make_sync(process))
                owned = ("synced", str(sorted(process.owned)))
                assert has == owned, f"all is well, {which}: {process.name} {owned}, and {has}"
        if {process.member_id for process in processes} != _list_members(shard) or not processes:
            return
        if all(self.is_well(shard, process) for process in processes):
            read = sorted(partition for process in processes for partition in process.owned)
            shown = {process.name: sorted(process.owned) for process in processes}
            assert read == sorted(self.all), f"all is well, {which}, with {shown} of {self.all}"

    def is_well(self, shard: Shard, process: Process) -> bool:
        """Whether it hears that there is nothing to do."""
        if process.is_classic:
            if process.has_to != REST or process.waiting is not None:
                return False
            return self._ask(shard, self.make_beat(process)) == (ALL_IS_WELL,)
        group = shard.consumer_groups.get(G)
        if (
            process.waiting is not None
            or process.generation <= 0
            or group is None
            or group.target_epoch < group.group_epoch
        ):
            return False
        well = ("heard", str(process.generation), str(sorted(process.owned)))
        return self._ask(shard, self._make_consumer_heartbeat(process)) == well

    def settle(self) -> None:
        """Heartbeats, and what they bring: then all is well, and all is read."""
        self._is_settling = True
        for _ in range(ROUNDS):
            for name in list(self.processes):
                for _ in range(3):
                    self.step(name)
            self.check()
            self.server.advance(BEAT_MS)
            self._listen()
        live = self.server.runtime.shards[self._partition]
        processes = list(self.alive())
        assert {each.member_id for each in processes} == _list_members(live), "nobody else is in"
        for process in processes:
            assert self.is_well(live, process), f"{process} is not at rest"
        self.check()


def compute_shares(answer: JoinGroupResponse, partitions: set[int]) -> tuple[MemberAssignment, ...]:
    """One partition after another to the members in turn.

    Cooperative members are given nothing that another one owns still.
    """
    said = {each.member_id: embedded.decode_subscription(each.metadata) for each in answer.members}
    owners: dict[int, MemberId] = {}
    for member_id, subscription in sorted(said.items(), key=lambda item: item[1].generation):
        owners.update(
            (p, member_id) for each in subscription.owned_partitions for p in each.partitions
        )
    ids = sorted(said)
    given: dict[MemberId, list[tuple[str, int]]] = {member_id: [] for member_id in ids}
    for partition in sorted(partitions):
        member_id = ids[partition % len(ids)]
        if answer.protocol_name == EAGER or owners.get(partition, member_id) == member_id:
            given[member_id].append((str(FOO), partition))
    return tuple(
        MemberAssignment(
            member_id,
            embedded.encode_assignment(embedded.Assignment(embedded.group_partitions(places)), 3),
        )
        for member_id, places in given.items()
    )


def _decode(assignment: bytes) -> set[int]:
    if not assignment:
        return set()
    given = embedded.decode_assignment(assignment).partitions
    return {partition for topic in given for partition in topic.partitions}


def _show(outcome: Outcome) -> Told:
    match outcome.response:
        case ClassicHeartbeatResponse():
            return (ALL_IS_WELL,)
        case ConsumerGroupHeartbeatResponse() as answer:
            if outcome.records:
                return ("its step",)
            given = answer.assignment
            owned = None if given is None else sorted(p for each in given for p in each.partitions)
            return ("heard", str(answer.member_epoch), str(owned))
        case JoinGroupResponse() as answer:
            return ("joined", str(answer.generation), str(answer.leader))
        case SyncGroupResponse() as answer:
            return ("synced", str(sorted(_decode(answer.assignment))))
        case _:
            return (type(outcome.response).__name__,)


def _list_members(shard: Shard) -> set[MemberId | None]:
    group: ConsumerGroup | ClassicGroup | None = shard.consumer_groups.get(G)
    if isinstance(group, ConsumerGroup) and group.member_count:
        return {member.member_id for member in group.members()}
    group = shard.classic_group(G)
    return set() if group is None else set(group.members)


def _check_once_each(shard: Shard) -> None:
    group = shard.classic_group(G)
    assert group is not None
    given = [p for member in group.members.values() for p in _decode(member.assignment)]
    assert len(given) == len(set(given)), f"{sorted(given)} are given"


def _describe(shard: Shard) -> tuple[str, int]:
    """Its type and state, and the generation or epoch."""
    consumer = shard.consumer_groups.get(G)
    if consumer is not None:
        return "consumer", consumer.group_epoch
    group = shard.classic_group(G)
    if group is None:
        return ClassicGroupState.DEAD.value, 0
    return group.state.value, group.generation
