"""The server's side of the wire: takes requests, parks heartbeats, checks outgoing answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.dispatch.handle import handle
from coordinator.runtime.api import Answer, MemberTicket, Watch
from model.commands.classic import JoinGroup, SyncGroup
from model.commands.command import Command
from model.commands.configs import AlterGroupConfigs
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.groups import ConsumerGroupDescribe, DeleteGroup
from model.commands.offsets import DeleteOffsets, OffsetCommit, OffsetFetch
from model.commands.topics import CreateTopic, DeleteTopic, GrowTopic
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.errors import GroupError
from model.ids import GroupId, TopicId, TopicName
from model.now import Now
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse, ConsumerGroupLeaveResponse
from model.responses.offsets import OffsetFetchResponse
from model.responses.response import Done
from model.responses.topics import TopicResponse
from tests.sim.checkers.classic_checkers import decode_names
from tests.sim.checkers.log_checkers import DurableFacts
from tests.sim.checkers.observed import ObservedRuntime
from tests.sim.checkers.offset_answers import OffsetAnswers
from tests.sim.checkers.offset_model import OffsetModel
from tests.sim.checkers.violations import check
from tests.sim.clients.transactions import TransactionCoordinator
from tests.sim.cluster.process import ServerProcess
from tests.support.shadow import places

PARK_MS = 500
ANSWERED_MS = 2_000
"""Without faults everything is answered by then."""

Send = Callable[[Answer], None]


@dataclass
class Parked:
    """A heartbeat that waits for news, of one client."""

    command: ConsumerGroupHeartbeat
    send: Send
    watch: Watch | None = None


@dataclass
class Cached:
    """A heartbeat that may be repeated, and its answer."""

    command: ConsumerGroupHeartbeat
    answer: ConsumerGroupHeartbeatResponse
    ticket: MemberTicket


class AnswerChecker:
    """S11: an answer shows nothing that is not durable. Kept over restarts."""

    def __init__(
        self,
        facts: DurableFacts,
        offsets: OffsetModel,
        coordinator: TransactionCoordinator,
        names: Mapping[TopicId, TopicName],
    ) -> None:
        self.facts = facts
        self.names = names
        """Of all topics that there ever were."""
        self.offsets = offsets
        self.answers = OffsetAnswers(facts, offsets)
        self.coordinator = coordinator

    def begin(self, command: Command, runtime: ObservedRuntime) -> Any:
        """What must be remembered of the moment at which the server takes a command."""
        match command:
            case OffsetCommit() | TxnOffsetCommit():
                return self.answers.begin_commit(command)
            case OffsetFetch():
                return self.answers.begin_fetch(command)
            case WriteTxnMarkers():
                return self.coordinator.note_taken(command)
            case DeleteGroup() | DeleteOffsets():
                return self.answers.begin_deletion(command, runtime.shard_of(command.group_id))
            case ConsumerGroupLeave():
                return self.facts.removals[command.group_id, command.member_id]
            case DeleteTopic(name=str() as name):
                self.offsets.note_topic_deleted(name)
                return None
            case _:
                return None

    def end(self, command: Command, begun: Any, answer: Answer) -> None:
        """The answer goes out."""
        match command, answer:
            case ((OffsetCommit() | TxnOffsetCommit()), _):
                self.answers.end_commit(command, begun, answer)
            case OffsetFetch(), OffsetFetchResponse():
                self.answers.end_fetch(command, begun, answer)
            case WriteTxnMarkers(), Done():
                self.coordinator.note_done(command, begun)
            case ((DeleteGroup() | DeleteOffsets()), _):
                self.answers.end_deletion(command, begun, answer)
            case ConsumerGroupHeartbeat(), ConsumerGroupHeartbeatResponse():
                self._end_heartbeat(command, answer)
            case JoinGroup(), JoinGroupResponse(leader=None):
                self._end_join(command.group_id, answer)
            case SyncGroup(), SyncGroupResponse():
                self._end_sync(command, answer)
            case ConsumerGroupLeave(), ConsumerGroupLeaveResponse(member_epoch=-2):
                key = (command.group_id, command.member_id)
                is_known = self.facts.removals[key] > begun or -2 in self.facts.epochs[key]
                check(is_known, "S11", f"{key} left for a while, not durably")
            case ConsumerGroupLeave(), ConsumerGroupLeaveResponse():
                key = (command.group_id, command.member_id)
                check(self.facts.removals[key] > begun, "S11", f"{key} left, not durably")
            case ((CreateTopic() | GrowTopic()), TopicResponse(topic)):
                known = (topic.name, topic.topic_id, topic.partitions) in self.facts.topics
                check(known, "S11", lambda: f"{topic} is not durable")
            case DeleteTopic(), TopicResponse(topic):
                is_deleted = topic.name in self.facts.deleted_topics
                check(is_deleted, "S11", f"the deletion of {topic} is not durable")
            case _:
                pass

    def _end_join(self, group_id: GroupId, answer: JoinGroupResponse) -> None:
        """Of a consumer group, or of one that this join has made a classic one."""
        key = (group_id, answer.member_id)
        is_durable = answer.generation in self.facts.epochs[key] or any(
            generation == answer.generation for generation, _ in self.facts.generations[key]
        )
        check(is_durable, "S11", f"{key} in {answer.generation} is not durable")

    def _end_sync(self, command: SyncGroup, answer: SyncGroupResponse) -> None:
        key = (command.group_id, command.member_id)
        if (command.generation, answer.assignment) in self.facts.generations[key]:
            return
        told = decode_names(answer.assignment)
        names = self.names
        is_durable = any(
            epoch == command.generation
            and told <= {(names[topic_id], partition) for topic_id, partition in held}
            for epoch, held in self.facts.standings[key]
        )
        check(is_durable, "S11", lambda: f"{key} with {told} is not durable")

    def _end_heartbeat(
        self, command: ConsumerGroupHeartbeat, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        key = (command.group_id, command.member_id)
        epoch = answer.member_epoch
        check(epoch in self.facts.epochs[key], "S11", f"{key} at {epoch} is not durable")
        if answer.assignment is not None:
            standing = (epoch, places(answer.assignment))
            known = standing in self.facts.standings[key]
            check(known, "S11", lambda: f"{key} with {standing} is not durable")


class WireDoor:
    """Requests of wire clients, for one server process."""

    def __init__(
        self, process: ServerProcess, runtime: ObservedRuntime, checker: AnswerChecker, parks: bool
    ) -> None:
        self._process = process
        self._runtime = runtime
        self._checker = checker
        self._parks = parks
        self._parked: dict[object, Parked] = {}
        self._cached: dict[object, Cached] = {}
        self._received: Counter[object] = Counter()
        self._unanswered: dict[int, tuple[Command, int]] = {}
        """What was submitted and when."""
        self._submitted = 0

    def receive(self, client: object, command: Command, send: Send) -> None:
        """A request has arrived."""
        self._received[client] += 1
        parked = self._parked.get(client)
        if parked is not None:
            self._end_parking(client, parked)
        if isinstance(command, ConsumerGroupHeartbeat):
            cached = self._cached.get(client)
            if cached is not None and self._answer_from_cache(command, cached, send):
                return
        self.submit(client, command, send)

    def submit(self, client: object, command: Command, send: Send, may_park: bool = True) -> None:
        """Submit, and check the answer when it goes out."""
        if isinstance(command, ConsumerGroupDescribe):
            for group_id in command.group_ids:
                self._runtime.tally_group("describe", group_id)
        elif isinstance(command, DeleteGroup):
            self._runtime.tally_group("delete group", command.group_id)
        elif isinstance(command, DeleteOffsets):
            self._runtime.tally_group("delete offsets", command.group_id)
        elif isinstance(command, AlterGroupConfigs):
            self._runtime.tally_group("settings", command.group_id)
        begun = self._checker.begin(command, self._runtime)
        received = self._received[client]
        ticket = None
        if isinstance(command, ConsumerGroupHeartbeat):
            ticket = self._runtime.ticket(command.group_id, command.member_id)

        number = self._submitted = self._submitted + 1
        self._unanswered[number] = command, self._process.monotonic_ms()

        def reply(answer: Answer) -> None:
            is_first = self._unanswered.pop(number, None) is not None
            check(is_first, "L2", lambda: f"{command} was answered twice")
            self._checker.end(command, begun, answer)
            if isinstance(answer, ConsumerGroupHeartbeatResponse) and not answer.has_changes:
                self._cache(client, command, answer, ticket)
            self._process.call_soon(lambda: answered(answer))

        def answered(answer: Answer) -> None:
            # What has been overtaken by another request is not held back for news.
            is_latest = self._received[client] == received
            self._answered(client, command, send, answer, may_park and is_latest)

        self._runtime.submit(command, reply)

    def _answered(
        self, client: object, command: Command, send: Send, answer: Answer, may_park: bool
    ) -> None:
        if (
            isinstance(command, ConsumerGroupHeartbeat)
            and isinstance(answer, ConsumerGroupHeartbeatResponse)
            and not answer.has_changes
        ):
            may_park &= self._parks and answer.parkable and command.member_epoch > 0
            if may_park and client not in self._parked:
                self._park(client, command, send)
                return
        send(answer)

    def check_answered(self, now_ms: int) -> None:
        """L2: whatever was submitted is answered."""
        waiting = [
            command
            for command, taken_ms in self._unanswered.values()
            if now_ms - taken_ms > ANSWERED_MS
        ]
        check(not waiting, "L2", lambda: f"these wait for an answer: {waiting}")

    # --------------------------------------------------------------------------------- parking

    def _park(self, client: object, command: ConsumerGroupHeartbeat, send: Send) -> None:
        parked = self._parked[client] = Parked(command, send)

        def end() -> None:
            if self._parked.get(client) is parked:
                self._end_parking(client, parked)

        def on_change() -> None:
            self._process.call_soon(end)

        parked.watch = self._runtime.watch(command.group_id, command.member_id, on_change)
        self._process.call_later_ms(PARK_MS, end)

    def _end_parking(self, client: object, parked: Parked) -> None:
        del self._parked[client]
        if parked.watch is not None:
            parked.watch.cancel()
        self.submit(client, parked.command, parked.send, may_park=False)

    # --------------------------------------------------------------------------------- tickets

    def _cache(
        self,
        client: object,
        command: Command,
        answer: ConsumerGroupHeartbeatResponse,
        ticket: MemberTicket | None,
    ) -> None:
        """Taken before the heartbeat was submitted, and alive: nothing happened in between."""
        assert isinstance(command, ConsumerGroupHeartbeat)
        if ticket is not None and ticket.is_valid() and command.member_epoch > 0:
            self._cached[client] = Cached(command, answer, ticket)

    def _answer_from_cache(
        self, command: ConsumerGroupHeartbeat, cached: Cached, send: Send
    ) -> bool:
        """The answer of a ticket that is alive is the core's answer."""
        if command != cached.command:
            return False
        now_ms = self._process.monotonic_ms()
        if not cached.ticket.touch(now_ms):
            return False
        key = (command.group_id, command.member_id)
        self._runtime.lively.heard_ms[key] = now_ms
        shard = self._runtime._shard_of(GroupId(command.group_id))
        try:
            outcome = handle(shard, command, Now(self._process.wall_ms(), now_ms))
        except GroupError as error:
            check(False, "ticket", f"{key} was answered from the cache, but the core says {error}")
            raise
        is_same = outcome.response == cached.answer and not outcome.records
        check(is_same, "ticket", lambda: f"{key}: cached {cached.answer}, the core says {outcome}")
        self._process.call_soon(lambda: send(cached.answer))
        return True
