"""Transactional producers, and the transaction coordinator that stands behind them.

The coordinator decides each transaction once, and says so to every log partition that has a part
of it until it is answered. It may go over to another broker: then it speaks with a higher epoch,
and what the one before has sent may still arrive. Under transaction version 2 (KIP-890) a marker
has a new epoch of the producer, so that anything may come late; under version 1 Kafka's protocol
trusts in what was sent before to have arrived before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from coordinator.runtime.api import Answer, Reply
from model.commands.offsets import TopicOffsets
from model.commands.transactions import AbortTransaction, TxnOffsetCommit, WriteTxnMarkers
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.responses.offsets import OffsetCommitResponse
from tests.sim.checkers.offset_model import OffsetPlace, Transaction
from tests.sim.checkers.violations import check
from tests.sim.clients.client import CALLER
from tests.sim.cluster.network import Way

if TYPE_CHECKING:
    from tests.sim.world import World

RETRY_MS = 900
ANSWER_MS = 1_500
TRIES = 2
LAST_EPOCH = 32_767
FIRST_EPOCHS = (0, 0, LAST_EPOCH - 3)
RETRIABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(eq=False)
class Marker:
    """What is to be said to one log partition, until it is answered."""

    partition: LogPartition
    producer_epoch: int
    transaction: Transaction
    is_answered: bool = False


@dataclass
class SentMarker:
    """One request with it. ``fenced_by`` is the highest coordinator epoch answered there before."""

    marker: Marker
    coordinator_epoch: int
    fenced_by: int = -1


class TransactionCoordinator:
    """Decides, and sends markers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.epoch = 1
        self.producers: list[Producer] = []
        self.sent: dict[int, tuple[WriteTxnMarkers, SentMarker]] = {}
        self.highest: dict[tuple[LogPartition, int], int] = {}
        """By partition and producer the highest coordinator epoch that was answered."""
        self.timed_out: set[tuple[LogPartition, int]] = set()
        """Partitions and producers that the server has fenced there."""
        self._ending: list[tuple[Producer, Marker]] = []
        self._ids = 1_000

    def start_producer(self) -> None:
        """One more transactional id."""
        producer = Producer(self)
        self.producers.append(producer)
        producer.start()

    def next_producer_id(self) -> ProducerId:
        self._ids += 1
        return ProducerId(self._ids)

    def move(self) -> None:
        """Another broker coordinates: it goes on with what is decided."""
        self.world.faults.note("transaction coordinator moved")
        self.epoch += 1
        for producer, marker in list(self._ending):
            self._send(producer, marker)

    def end(self, producer: Producer, transaction: Transaction, epoch: int, commit: bool) -> None:
        """Decide, and tell the partitions."""
        transaction.decision = commit
        for partition in sorted(producer.partitions):
            marker = Marker(partition, epoch, transaction)
            self._ending.append((producer, marker))
            self._send(producer, marker)

    def _send(self, producer: Producer, marker: Marker) -> None:
        if marker.is_answered:
            return
        marker.transaction.is_marked.add(marker.partition)
        command, send, is_newest = self._compose(producer, marker, self.epoch)
        world = self.world
        if producer.version < 2:
            producer.to_server.follow(producer.commits_to_server)

        def deliver() -> None:
            times = 2 if world.faults.strikes("marker doubled") else 1
            world.deliver(None, command, send, times)

        if not world.faults.strikes("marker lost"):
            producer.to_server.carry(deliver)
        if producer.version >= 2 and world.faults.strikes("marker late"):
            producer.to_server.carry_late(deliver)
        world.time.call_later_ms(RETRY_MS, partial(self._retry, producer, marker, is_newest))

    def _retry(self, producer: Producer, marker: Marker, epoch: int) -> None:
        if epoch == self.epoch:
            self._send(producer, marker)

    def _compose(
        self, producer: Producer, marker: Marker, epoch: int
    ) -> tuple[WriteTxnMarkers, Callable[[Answer], None], int]:
        transaction = marker.transaction
        command = WriteTxnMarkers(
            CALLER,
            marker.partition,
            ProducerId(transaction.producer_id),
            marker.producer_epoch,
            epoch,
            bool(transaction.decision),
            producer.version,
        )
        self.sent[id(command)] = command, SentMarker(marker, epoch)

        def send(answer: Answer) -> None:
            if not self.world.faults.strikes("response lost"):
                producer.to_client.carry(partial(self._answered, producer, marker, epoch, answer))

        return command, send, epoch

    def _answered(self, producer: Producer, marker: Marker, epoch: int, answer: Answer) -> None:
        if marker.is_answered or epoch < self.epoch:
            return
        if isinstance(answer, GroupError):
            key = marker.partition, marker.transaction.producer_id
            if answer.code is not ErrorCode.INVALID_PRODUCER_EPOCH or key not in self.timed_out:
                check(answer.code in RETRIABLE, "S28", lambda: f"{marker} was refused: {answer}")
                return
            # As Kafka's coordinator does: the producer is fenced there, and nothing is left to end.
            producer.is_fenced = True
        marker.is_answered = True
        self._ending = [(p, m) for p, m in self._ending if m is not marker]
        producer.marker_answered()

    def send_from_the_past(self, producer: Producer) -> None:
        """A coordinator that another has taken over from still speaks, and of an open transaction.

        Only where the new one has been heard: nobody else can know better.
        """
        transaction = producer.transaction
        if transaction is None or producer.is_ending:
            return
        for partition in sorted(producer.partitions):
            if self.highest.get((partition, transaction.producer_id), -1) < self.epoch:
                continue
            self.world.faults.note("marker of an older coordinator")
            marker = Marker(partition, transaction.epoch, transaction)
            command = self._compose(producer, marker, self.epoch - 1)[0]
            self.world.deliver(None, command, lambda _: None)

    # ------------------------------------------------------------------- as the server sees it

    def note_timed_out(
        self, command: AbortTransaction, offsets: Mapping[OffsetPlace, int], reply: Reply
    ) -> Reply:
        """The server aborts, and fences the producer: nobody has ended what waits there."""
        self.world.faults.note("transaction timed out")
        self.timed_out.add((command.partition, int(command.producer_id)))
        aborted = []
        for place, offset in offsets.items():
            transaction = self.world.offsets.transaction_of(offset)
            assert transaction is not None, f"{offset} waits, and is of no transaction"
            transaction.is_marked.add(command.partition)
            transaction.timed_out.add(command.partition)
            transaction.timed_out_groups.add(place[0])
            aborted.append(transaction)

        def note_and_reply(answer: Answer) -> None:
            for transaction in aborted:
                transaction.ended.add(command.partition)
            reply(answer)

        return note_and_reply

    def note_taken(self, command: WriteTxnMarkers) -> SentMarker:
        """The server takes a marker."""
        sent = self.sent[id(command)][1]
        key = (command.partition, int(command.producer_id))
        return SentMarker(sent.marker, sent.coordinator_epoch, self.highest.get(key, -1))

    def note_done(self, command: WriteTxnMarkers, sent: SentMarker) -> None:
        """The server has written it, durably, and says so."""
        check(
            sent.coordinator_epoch >= sent.fenced_by,
            "S16",
            lambda: f"{command} was let in after a coordinator of {sent.fenced_by}",
        )
        key = (command.partition, int(command.producer_id))
        self.highest[key] = max(self.highest.get(key, -1), sent.coordinator_epoch)
        transaction = sent.marker.transaction
        if command.partition in transaction.timed_out:
            is_known = all(
                place[0] in transaction.timed_out_groups
                for place in transaction.acknowledged
                if self.world.partition_of(place[0]) == command.partition
            )
            is_lost = command.committed and is_known
            check(not is_lost, "S16", lambda: f"{command} is done, of what timed out")
            return
        places = [
            place
            for place in transaction.acknowledged
            if self.world.partition_of(place[0]) == command.partition
        ]
        self.world.offsets.note_ended(transaction, places)
        transaction.ended.add(command.partition)


@dataclass
class Step:
    """One TxnOffsetCommit of a transaction."""

    command: TxnOffsetCommit
    tries: int = 0
    is_answered: bool = False


@dataclass(eq=False)
class Producer:
    """One transactional id: one transaction after another."""

    coordinator: TransactionCoordinator
    version: int = 0
    epoch: int = 0
    transaction: Transaction | None = None
    partitions: set[LogPartition] = field(default_factory=set)
    """Those of the log that have a part of the transaction."""
    is_ending: bool = False
    is_fenced: bool = False
    """It has heard so: the next transaction has another epoch."""
    _steps: list[Step] = field(default_factory=list)
    _has_failed: bool = False
    _markers_left: int = 0

    def __post_init__(self) -> None:
        world = self.world = self.coordinator.world
        self.random = world.random
        self.version = self.random.choice((1, 2))
        self.epoch = self.random.choice(FIRST_EPOCHS)
        self.producer_id = self.coordinator.next_producer_id()
        self.commits_to_server = Way(world.network, "message lost")
        self.to_server = Way(world.network, "message lost")
        self.to_client = Way(world.network, "response lost")

    def start(self) -> None:
        self._later(self.random.randint(100, 4_000), self._begin)

    def _later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.world.time.call_later_ms(delay_ms, callback)

    # ---------------------------------------------------------------------------- transactions

    def _begin(self) -> None:
        if self.world.faults.is_healed or self.transaction is not None:
            return
        self.transaction = Transaction(self.producer_id, self.epoch)
        self.partitions, self._steps, self._has_failed = set(), [], False
        self.is_ending = False
        if self.version < 2:
            self.commits_to_server.follow(self.to_server)
        for _ in range(self.random.randint(1, 3)):
            self._steps.append(Step(self._compose()))
        for step in self._steps:
            self._send(step, self.transaction)
        if self.world.faults.strikes("producer crash"):
            transaction = self.transaction
            self._later(self.random.randint(100, 5_000), partial(self._replace, transaction))

    def _compose(self) -> TxnOffsetCommit:
        world, transaction = self.world, self.transaction
        assert transaction is not None
        group, member_id, epoch = world.choose_committer(self.random)
        self.partitions.add(world.partition_of(group))
        name = self.random.choice(("foo", "foo", "bar"))
        offsets = []
        for partition in self.random.sample(range(3), self.random.randint(1, 2)):
            offset = world.next_offset()
            world.offsets.note_offset_of(transaction, offset)
            offsets.append((partition, offset, -1, ""))
        return TxnOffsetCommit(
            CALLER,
            GroupId(group),
            ProducerId(self.producer_id),
            transaction.epoch,
            (TopicOffsets(TopicName(name), None, make_offset_columns(offsets)),),
            MemberId(member_id),
            epoch,
        )

    def _send(self, step: Step, transaction: Transaction) -> None:
        step.tries += 1
        world = self.world

        def send(answer: Answer) -> None:
            self.to_client.carry(partial(self._answered, step, transaction, answer))

        def deliver() -> None:
            times = 2 if world.faults.strikes("message duplicated") else 1
            world.deliver(None, step.command, send, times)

        self.commits_to_server.carry(deliver)
        if self.version >= 2 and world.faults.strikes("message duplicated"):
            self.commits_to_server.carry_late(deliver)
        self._later(ANSWER_MS, partial(self._timed_out, step, transaction))

    def _timed_out(self, step: Step, transaction: Transaction) -> None:
        if step.is_answered or self.is_ending or self.transaction is not transaction:
            return
        if step.tries < TRIES:
            self._send(step, transaction)
        else:
            self._end(commit=False)

    def _answered(self, step: Step, transaction: Transaction, answer: Answer) -> None:
        if step.is_answered or self.is_ending or self.transaction is not transaction:
            return
        step.is_answered = True
        accepted = isinstance(answer, OffsetCommitResponse) and all(
            row.error is ErrorCode.NONE for topic in answer.topics for row in topic.partitions
        )
        self._has_failed |= not accepted
        if all(step.is_answered for step in self._steps):
            commit = not self._has_failed and self.random.random() < 0.75
            wait_ms = self.random.choice((0, 10, 2_000))
            self._later(wait_ms, partial(self._finish, transaction, commit))

    def _finish(self, transaction: Transaction, commit: bool) -> None:
        if self.transaction is transaction and not self.is_ending:
            if self.world.faults.strikes("transaction abandoned"):
                # Until the end of the faults nobody ends it but the server, and it goes on.
                again = partial(self._speak_as_zombie, [step.command for step in self._steps])
                self._later(self.random.randint(1_000, 30_000), again)
                return
            self._end(commit)

    def _replace(self, transaction: Transaction) -> None:
        """Another process has the transactional id now; this one may still speak."""
        if self.transaction is not transaction or self.is_ending:
            return
        zombie = [step.command for step in self._steps]
        self._end(commit=False, fences=True)
        self._later(self.random.randint(1, 3_000), partial(self._speak_as_zombie, zombie))

    def _speak_as_zombie(self, commands: list[TxnOffsetCommit]) -> None:
        """To where its transaction was: what it says after the marker must be refused.

        Under version 1 nothing tells a late marker of the transaction before from one of this.
        """
        if self.world.faults.is_healed:
            return
        self.world.faults.note("zombie producer")
        for command in commands:
            deliver = partial(self.world.deliver, None, command, lambda _: None)
            if self.version < 2:
                self.commits_to_server.carry(deliver)
            else:
                deliver()

    def _end(self, commit: bool, fences: bool = False) -> None:
        assert self.transaction is not None
        self.is_ending = True
        raised = self.version >= 2 or fences
        marker_epoch = min(self.epoch + raised, LAST_EPOCH)
        self.epoch = marker_epoch
        self._markers_left = len(self.partitions)
        self.coordinator.end(self, self.transaction, marker_epoch, commit)

    def marker_answered(self) -> None:
        """One partition has the marker."""
        self._markers_left -= 1
        if self._markers_left:
            return
        self.transaction = None
        self.epoch += self.is_fenced
        self.is_fenced = False
        if self.epoch >= LAST_EPOCH:
            self.producer_id, self.epoch = self.coordinator.next_producer_id(), 0
        if not self.world.faults.is_healed:
            self._later(self.random.randint(1, 6_000), self._begin)

    def finish(self) -> None:
        """No more faults: what is open is ended."""
        if self.transaction is not None and not self.is_ending:
            self._end(commit=False)
