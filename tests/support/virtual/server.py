"""The real runtime on virtual time and a disk in memory, driven by the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace

import structlog

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.commit.process_end import HalfApplied
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL, Caller
from model.commands.command import Command
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, LogPartition, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.offsets import OffsetFetchResponse
from model.topics import Topic
from tests.support.memory import MemoryLogStore
from tests.support.virtual.scheduler import VirtualScheduler

CALLER = Caller("User:test", "client", "/127.0.0.1")
REBALANCE_TIMEOUT_MS = 60_000
Assignment = dict[str, tuple[int, ...]]


_failures: list[str] = []


def _drop(logger: object, name: str, event: MutableMapping[str, object]) -> str:
    if event.get("exc_info"):
        _failures.append(f"{event.get('event')}: {sys.exc_info()[1]!r}")
    raise structlog.DropEvent


def quiet_logs() -> None:
    """Drop the runtime's log lines: members expire by the thousand here."""
    structlog.configure(processors=[_drop], cache_logger_on_first_use=False)
    _failures.clear()


def take_logged_failures() -> list[str]:
    """The exceptions that the runtime has logged since ``quiet_logs``, and survived."""
    found = _failures.copy()
    _failures.clear()
    return found


def make_topic_id(name: str, incarnation: int = 0) -> TopicId:
    """A topic id made from the name, so that records are the same in every run."""
    return TopicId(f"{name[:12]:_<12}{incarnation:04d}".encode())


class Pending:
    """A response, received or still awaited."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def __call__(self, answer: Answer) -> None:
        self.answers.append(answer)

    @property
    def is_answered(self) -> bool:
        return bool(self.answers)

    @property
    def answer(self) -> Answer:
        assert len(self.answers) == 1, f"answered {len(self.answers)} times"
        return self.answers[0]


class ProcessEnded(BaseException):
    """The server has ended its process."""


class VirtualServer:
    """Server processes, one after another, on one disk. The server runs only in these methods."""

    authorizer: Authorizer = AllowAll()

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        settings: CoordinatorSettings | None = None,
        store: MemoryLogStore | None = None,
        partitions: int = 4,
    ) -> None:
        quiet_logs()
        self.settings = settings or CoordinatorSettings()
        self.store = store or MemoryLogStore(partitions)
        self.scheduler = VirtualScheduler()
        self.failures: list[BaseException] = []
        self._incarnations: dict[str, int] = {}
        self.start()
        for name, count in (topics or {}).items():
            self.create(name, count)

    # ------------------------------------------------------------------------------- processes

    def start(self, topics: Sequence[Topic] = ()) -> None:
        """Start a new process on the disk; ``topics`` are those of a cluster."""
        self.runtime = Runtime(
            self.store,
            self.settings,
            clock=self.scheduler,
            scheduler=self.scheduler,
            authorizer=self.authorizer,
            on_failure=self._fail,
            keep_evidence=self.keep_evidence,
        )
        self.runtime.load(topics)
        self.settle()

    def _fail(self, failure: BaseException) -> None:
        """Raise a bug where it occurs; for a failed write, note it in ``failures``."""
        self.failures.append(failure)
        if isinstance(failure, HalfApplied):
            raise ProcessEnded from failure

    def keep_evidence(self, partition: LogPartition, evidence: str) -> None:
        """Raise the violation of an invariant: no test but those of the guard has one."""
        raise ProcessEnded(evidence)

    def crash(self, survivors: int = 0) -> None:
        """Kill the process; of the unsynced writes the first ``survivors`` stay."""
        self.scheduler.drop_all()
        self.store = self.store.crash(survivors)

    def restart(self, survivors: int = 0) -> None:
        """``crash`` and ``start``."""
        self.crash(survivors)
        self.start()

    def settle(self) -> None:
        """Run all iterations due now."""
        self.scheduler.run_for(0)

    def advance(self, duration_ms: int) -> None:
        """Run all iterations of the next milliseconds."""
        self.scheduler.run_for(duration_ms)

    def step_until(self, condition: Callable[[], bool]) -> None:
        """Turn by turn, as few as it takes."""
        for _ in range(1_000):
            if condition():
                return
            self.scheduler.step()
        raise AssertionError("it never is")

    # -------------------------------------------------------------------------------- commands

    def submit(self, command: Command) -> Pending:
        """Submit, and run nothing yet."""
        pending = Pending()
        self.runtime.submit(command, pending)
        return pending

    def ask(self, command: Command) -> Answer:
        """Submit, run the iterations due now, and return the response."""
        pending = self.submit(command)
        self.settle()
        return pending.answer

    def topic(self, name: str) -> TopicId:
        """The id of a topic."""
        return self.runtime.image.by_name[TopicName(name)].topic_id

    def create(self, name: str, partitions: int) -> Answer:
        """Create a topic; creating it again gives it another id."""
        incarnation = self._incarnations[name] = self._incarnations.get(name, -1) + 1
        topic_id = make_topic_id(name, incarnation)
        return self.ask(CreateTopic(INTERNAL, TopicName(name), topic_id, partitions))

    def heartbeat(
        self,
        group: str,
        member: str,
        epoch: int,
        *,
        sub: Iterable[str] | None = None,
        owned: Mapping[str, Iterable[int]] | None = None,
        timeout_ms: int | None = None,
        assignor: str | None = None,
    ) -> ConsumerGroupHeartbeat:
        """A heartbeat command; arguments left out are unchanged."""
        return ConsumerGroupHeartbeat(
            CALLER,
            GroupId(group),
            MemberId(member),
            epoch,
            rebalance_timeout_ms=UNCHANGED if timeout_ms is None else timeout_ms,
            subscribed_topic_names=(
                UNCHANGED if sub is None else tuple(TopicName(name) for name in sub)
            ),
            owned=None if owned is None else self.partitions(owned),
            server_assignor=UNCHANGED if assignor is None else assignor,
        )

    def join_command(
        self,
        group: str,
        member: str,
        sub: Iterable[str],
        *,
        timeout_ms: int = REBALANCE_TIMEOUT_MS,
        assignor: str | None = None,
    ) -> ConsumerGroupHeartbeat:
        """A heartbeat with epoch 0."""
        return self.heartbeat(
            group, member, 0, sub=sub, owned={}, timeout_ms=timeout_ms, assignor=assignor
        )

    def join(
        self, group: str, member: str, sub: Iterable[str], *, timeout_ms: int = REBALANCE_TIMEOUT_MS
    ) -> ConsumerGroupHeartbeatResponse:
        """Join and get the response."""
        return self.beat(self.join_command(group, member, sub, timeout_ms=timeout_ms))

    def beat(self, command: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat that must be answered without an error."""
        answer = self.ask(command)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), repr(answer)
        return answer

    def acknowledge_command(self, group: str, member: str) -> ConsumerGroupHeartbeat:
        """A heartbeat of who owns just what the group's state assigns to it, at its epoch."""
        live = self.group(group)
        found = live.member(MemberId(member))
        assert found is not None, f"{member} is no member"
        owned = live.numbers.topic_partitions(found.assigned)
        return replace(self.heartbeat(group, member, found.member_epoch), owned=tuple(owned))

    def leave(self, group: str, member: str) -> Answer:
        """A heartbeat with epoch -1."""
        return self.ask(ConsumerGroupLeave(CALLER, GroupId(group), MemberId(member)))

    def commit_command(
        self,
        group: str,
        member: str,
        epoch: int | None,
        topic: str,
        offsets: Mapping[int, int],
        *,
        by_consumer_protocol: bool = True,
    ) -> OffsetCommit:
        """A commit of some partitions of one topic, by name."""
        partitions = make_offset_columns((p, offset, -1, "") for p, offset in offsets.items())
        return OffsetCommit(
            CALLER,
            GroupId(group),
            MemberId(member),
            epoch,
            (TopicOffsets(TopicName(topic), None, partitions),),
            by_consumer_protocol=by_consumer_protocol,
        )

    def fetch_command(self, group: str, topic: str, partitions: Iterable[int]) -> OffsetFetch:
        """A fetch by a non-member."""
        wanted = TopicToFetch(TopicName(topic), None, tuple(partitions))
        return OffsetFetch(CALLER, GroupId(group), (wanted,))

    def fetch(self, group: str, topic: str, partition: int) -> int:
        """The committed offset, -1 if there is none."""
        answer = self.ask(self.fetch_command(group, topic, (partition,)))
        assert isinstance(answer, OffsetFetchResponse), repr(answer)
        return answer.topics[0].partitions[0].offset

    # --------------------------------------------------------------------------------- looking

    def partitions(self, owned: Mapping[str, Iterable[int]]) -> tuple[TopicPartitions, ...]:
        """Topic names and partitions in the form of a command."""
        return tuple(TopicPartitions(self.topic(t), tuple(sorted(p))) for t, p in owned.items())

    def names(self, assignment: Iterable[TopicPartitions] | None) -> Assignment | None:
        """The partitions of a response by topic name; by id if the topic does not exist."""
        if assignment is None:
            return None
        by_id = self.runtime.image.by_id
        return {
            by_id[topic.topic_id].name if topic.topic_id in by_id else topic.topic_id.decode(): (
                topic.partitions
            )
            for topic in assignment
        }

    def group(self, group_id: str) -> ConsumerGroup:
        """The live state of a group."""
        return next(g for g in self.runtime.groups() if g.group_id == group_id)


def error_name(answer: Answer) -> str:
    """Kafka's name of an error response, ``NONE`` for any other response."""
    return answer.code.name if isinstance(answer, GroupError) else "NONE"
