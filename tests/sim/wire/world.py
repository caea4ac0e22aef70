"""A cluster whose clients speak bytes to the real door: from one seed, in one thread."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from coordinator.runtime.api import Answer
from gateway.settings import GatewaySettings
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat, ExpireMember
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.records import Record
from tests.sim.cluster.process import Call, ServerProcess
from tests.sim.conversions import Kind
from tests.sim.faults import Faults
from tests.sim.wire.checked import CheckedCoordinator
from tests.sim.wire.faults import WireFaults
from tests.sim.wire.gateway import Gateway
from tests.sim.wire.history import CROWD_TOPIC, History
from tests.sim.wire.judge import Judge
from tests.sim.wire.links import FAST_MS, SLOW_MEAN_MS, Link
from tests.sim.wire.themes import Theme, choose_theme
from tests.sim.world import World

if TYPE_CHECKING:
    from tests.sim.wire.member import Member

CRASH_AFTER_CONVERSION_MS = (0, 5, 30, 100, 300, 1_000, 3_000)
CRASHES_MAX = 6
TURN_MS = 4_000
"""Two conversions within so much are one after the other."""
CROWD_PARTITIONS = 10


class SlowProcess(ServerProcess):
    """A process on a busy machine: turns of the loop take their time, in their order."""

    turn_ms: Callable[[], int] = staticmethod(lambda: 0)
    _last_ms = 0

    def call_soon(self, callback: Callable[[], None]) -> Call:
        now_ms = self._time.now_ms
        self._last_ms = max(self._last_ms, now_ms + self.turn_ms())
        return self.call_later_ms(self._last_ms - now_ms, callback)


class WireWorld(World):
    """The real door, its connections, and members that are judged by what they believe."""

    gateway: Gateway

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.links: list[Link] = []
        self.members: list[Member] = []
        self.of_member: dict[tuple[GroupId, MemberId], Member] = {}
        self.theme = choose_theme(seed)
        self.crashes_left = CRASHES_MAX
        self._converted_ms = -TURN_MS
        self.is_over = False
        """Faults have stopped."""
        self.disturbed_ms = 0
        """When something last happened that takes time to get over."""
        rng = random.Random(f"gateway {seed}")
        self.gateway_settings = GatewaySettings(
            gateway_park_ms=rng.choice(self.theme.parks_ms),
            gateway_park_gap_ms=rng.choice((50, 120, 120)),
        )
        self.judge = Judge(self)
        self.history = History(self)
        super().__init__(seed, verbose)

    def _choose_faults(self, rng: random.Random) -> Faults:
        return WireFaults.choose_for(rng, self.theme.faults)

    def _choose_settings(self, rng: random.Random) -> CoordinatorSettings:
        return choose_wire_settings(rng, self.faults, self.theme)

    def _choose_topics(self, rng: random.Random) -> Mapping[str, int]:
        crowd = {CROWD_TOPIC: CROWD_PARTITIONS} if self.theme.crowd else {}
        return {"foo": rng.randint(*self.theme.partitions), "bar": rng.randint(1, 3), **crowd}

    def _make_process(self) -> ServerProcess:
        process = SlowProcess(self.time, self._blocking_ms, self._computing_ms)
        process.turn_ms = self._turn_ms
        return process

    def _turn_ms(self) -> int:
        if self.faults.is_on("slow turns") and self.faults.strikes("slow turns"):
            return self.random.choice((1, 2, 5))
        return 0

    def _blocking_ms(self) -> int:
        if self.faults.strikes("slow fsync"):
            return self.random.choice((10, 50, 300, 1_000))
        return self.random.randint(0, 3)

    def _open_doors(self) -> None:
        self.coordination = CheckedCoordinator(self.process, self.runtime, self.checker)
        self.gateway = Gateway(self.process, self.coordination, self.gateway_settings)

    def delay_ms(self) -> int:
        """How long bytes are on their way."""
        if self.faults.strikes("message delayed"):
            return int(self.random.expovariate(1 / SLOW_MEAN_MS)) + 1
        return self.random.randint(*FAST_MS)

    # --------------------------------------------------------------------------------- process

    def crash_server(self) -> None:
        if not self.is_up:
            return
        self.disturb()
        super().crash_server()
        links, self.links = self.links, []
        for link in links:
            link.server_died()

    def restart_server(self) -> None:
        self.disturb()
        self.start_server()
        self.check_acknowledged()
        self.check_live("after a restart")

    def disturb(self) -> None:
        """Something happened that the cluster has to get over."""
        self.disturbed_ms = self.time.now_ms

    def _on_converted(self, kind: Kind, group_id: str, records: tuple[Record, ...]) -> None:
        self.note("converted", group_id, kind)
        self.disturb()
        self.reached["conversion", "made", kind] += 1
        self.faults.happened[f"({kind})"] += 1
        after_ms = self.random.choice(CRASH_AFTER_CONVERSION_MS)
        if self.crashes_left and self.faults.strikes("crash after a conversion"):
            self.crashes_left -= 1
            process = self.process
            self.time.call_later_ms(
                after_ms, lambda: self.crash_server() if self.process is process else None
            )
        now_ms = self.time.now_ms
        is_turn = now_ms - self._converted_ms < TURN_MS
        self._converted_ms = now_ms
        ends = self.theme.ends_at_a_turn if is_turn else self.theme.ends_at_a_conversion
        if self.random.random() < ends:
            # Whatever else happened would set right what the conversion left wrong.
            self.time.call_later_ms(after_ms + 1, self._end_faults)

    def _end_faults(self) -> None:
        self.is_over = True
        self.faults.is_healed = True

    # --------------------------------------------------------------------------------- members

    def _on_gone(self, group_id: GroupId, member_id: MemberId, is_member: bool) -> None:
        member = self.of_member.get((group_id, member_id))
        if member is not None and member.member_id == member_id:
            member.is_removed = True

    def _on_in(self, group_id: GroupId, member_id: MemberId) -> None:
        member = self.of_member.get((group_id, member_id))
        if member is not None and member.member_id == member_id:
            member.is_removed = False

    def _on_expired(self, command: ExpireMember) -> None:
        self.note("expired", command.group_id, command.member_id, command.deadline)
        self._on_gone(command.group_id, command.member_id, False)

    def _on_removed(self, group_id: GroupId, member_id: MemberId) -> None:
        self._on_gone(group_id, member_id, False)

    def _on_joined(self, command: ConsumerGroupHeartbeat) -> None:
        self._on_in(command.group_id, command.member_id)

    def held_by(self, group: GroupId, member_id: MemberId) -> frozenset[tuple[TopicId, int]]:
        """What the server has given a member of a consumer group."""
        found = self.runtime.shard_of(group).consumer_groups.get(group) if self.is_up else None
        member = None if found is None else found.member(member_id)
        if found is None or member is None:
            return frozenset()
        topics = found.numbers.topic_partitions(sorted(member.assigned))
        return frozenset((topic.topic_id, p) for topic in topics for p in topic.partitions)

    # ---------------------------------------------------------------------------------- topics

    def next_incarnation(self, name: str) -> int:
        """The number of the next topic of that name."""
        self._incarnations[name] += 1
        return self._incarnations[name] - 1

    def name_topic(self, topic_id: TopicId, name: str) -> None:
        """A topic of that id may be there soon."""
        self.topic_names[topic_id] = TopicName(name)

    def topic_id(self, name: str) -> TopicId | None:
        """What a name means now."""
        topic = self.runtime.image.by_name.get(TopicName(name))
        return None if topic is None else topic.topic_id

    def partitions_of(self, names: tuple[str, ...]) -> dict[str, int]:
        """As a client's metadata says it."""
        image = self.runtime.image.by_name
        return {
            name: image[TopicName(name)].partitions for name in names if TopicName(name) in image
        }

    def deliver(
        self, client: object, command: Command, send: Callable[[Answer], None], times: int = 1
    ) -> None:
        """A tool asks, past the wire."""
        if self.is_up:
            self.note("tool", command)
            submit: Any = partial(self.coordination.submit, command, send)
            self.process.call_soon(submit)


def choose_wire_settings(rng: random.Random, faults: Faults, theme: Theme) -> CoordinatorSettings:
    """Timeouts, short and long; few members have much to say to one another."""
    session_ms = rng.choice((6_000, 10_000))
    return CoordinatorSettings(
        group_consumer_session_timeout_ms=session_ms,
        group_consumer_min_session_timeout_ms=session_ms,
        group_consumer_max_session_timeout_ms=2 * session_ms,
        group_consumer_heartbeat_interval_ms=rng.choice((1_000, 2_000)),
        group_consumer_min_heartbeat_interval_ms=500,
        group_consumer_max_heartbeat_interval_ms=3_000,
        assignor_inline_budget_ms=0 if "slow assignor" in faults.on else 5,
        flush_records_max=rng.choice((3, 5_000, 5_000)),
        group_consumer_migration_policy=rng.choice(theme.policies),
        group_initial_rebalance_delay_ms=rng.choice((0, 500, 2_000)),
    )
