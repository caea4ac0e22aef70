"""The commits of one group on their way to the cluster: a queue, and the batches taken from it.

Pure: the shell is ``cluster_offsets``. A batch has the oldest commits, at most one row for each
partition: of two commits of a partition the later is sent, and both get its result. There is one
batch at a time, and commits are never sent after one that came later. Whose time is over is
answered, also if it is on its way: then it may be done yet, before all that is sent after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, TypeAlias

from coordinator.runtime.api import Answer, Release, Reply
from model.commands.offsets import OffsetCommit
from model.errors import CoordinatorLoadInProgress, ErrorCode, GroupError
from model.responses.offsets import OffsetCommitResponse
from upstream.offsets.checked_commits import accept_rows, compute_answer
from upstream.offsets.offset_requests import Row, Spot
from upstream.statistics import UpstreamStatistics

BATCH_BYTES_MAX: Final = 400_000
"""A broker writes a request as one batch of records, of 1 MB at most by default."""
ANSWERS_SLICE: Final = 100
"""Commits answered in one iteration, each in some 50 µs."""
ROW_BYTES: Final = 100
"""A record without the texts in it."""
REPEATED_WEIGHT: Final = 2 * ROW_BYTES
"""A commit of one partition without metadata."""


def weigh(commit: OffsetCommit) -> int:
    """About the bytes that a commit takes while it waits."""
    return sum(
        ROW_BYTES * (1 + len(topic.partitions)) + sum(map(len, topic.offsets.metadata))
        for topic in commit.topics
    )


@dataclass(slots=True)
class QueuedCommit:
    """A commit that is not answered yet.

    ``checked`` is the answer of the check, ``None`` before it; ``left`` are the rows that are still
    to be sent, ``codes`` the results of those that were.
    """

    number: int
    commit: OffsetCommit
    reply: Reply
    since_ms: int
    weight: int
    began_s: float
    checked: OffsetCommitResponse | None = None
    left: deque[Row] = field(default_factory=deque)
    codes: dict[Spot, ErrorCode] = field(default_factory=dict)


@dataclass(slots=True)
class RepeatedCommit:
    """A commit of one partition by a ticket, which has checked it, that is not answered yet."""

    number: int
    row: Row
    release: Release
    since_ms: int
    began_s: float


AnyCommit: TypeAlias = QueuedCommit | RepeatedCommit
Result: TypeAlias = OffsetCommitResponse | GroupError | ErrorCode | None
"""An answer, the code of a repeated commit, or ``None`` for the codes of the commit's rows."""


@dataclass(slots=True)
class Batch:
    """The rows of one request, and the commits that they are of, with their partitions.

    ``late_weight`` is that of commits which were answered before the request.
    """

    rows: dict[Spot, Row] = field(default_factory=dict)
    commits: list[tuple[AnyCommit, Sequence[Spot]]] = field(default_factory=list)
    bytes: int = 0
    late_weight: int = 0


@dataclass(slots=True)
class Load:
    """About the bytes of all commits that wait, of all groups."""

    bytes: int = 0


@dataclass(slots=True)
class CommitQueue:
    """The queue of a group, whose id has ``id_bytes``.

    ``weight`` is about the bytes of its commits. What waits for commits to be answered is called
    when they are.
    """

    id_bytes: int
    load: Load
    statistics: UpstreamStatistics
    commits: dict[int, AnyCommit] = field(default_factory=dict)
    weight: int = 0
    _next: int = 0
    _on_its_way: Batch | None = None
    _settled: deque[tuple[AnyCommit, Result]] = field(default_factory=deque)
    _waiting: deque[tuple[int, Callable[[], None]]] = field(default_factory=deque)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here."""
        return not (self.commits or self._settled or self._waiting)

    @property
    def has_settled(self) -> bool:
        """Whether ``answer_some`` has something to do."""
        return bool(self._settled)

    def add(self, commit: OffsetCommit, reply: Reply, now_ms: int) -> QueuedCommit:
        """Accept a commit; it is sent when it has been checked."""
        weight = weigh(commit)
        queued = QueuedCommit(self._next, commit, reply, now_ms, weight, perf_counter())
        self._note_added(queued, weight)
        return queued

    def add_repeated(self, row: Row, release: Release, now_ms: int) -> None:
        """Accept a commit that a ticket has checked."""
        queued = RepeatedCommit(self._next, row, release, now_ms, perf_counter())
        self._note_added(queued, REPEATED_WEIGHT)

    def _note_added(self, queued: AnyCommit, weight: int) -> None:
        self.commits[self._next] = queued
        self._next += 1
        self.weight += weight
        self.load.bytes += weight
        self.statistics.commits_unanswered_now += 1

    def note_checked(self, queued: QueuedCommit, answer: OffsetCommitResponse) -> None:
        """The check has accepted some rows of a commit; without any, it is answered."""
        queued.checked = answer
        rows = accept_rows(queued.commit.topics, answer)
        queued.left.extend(rows)
        if not rows:
            self.end(queued, answer)

    def end(self, queued: QueuedCommit, answer: OffsetCommitResponse | GroupError) -> None:
        """Answer a commit, unless it was answered."""
        if self.commits.pop(queued.number, None) is not None:
            self._answer(queued, answer)

    def _fail(self, queued: AnyCommit, error: GroupError) -> None:
        if self.commits.pop(queued.number, None) is not None:
            self._answer(queued, error)

    def _answer(self, queued: AnyCommit, result: Result) -> None:
        """Answer what is not among ``commits`` any more, so that it is answered once."""
        self._note_answered(queued, _weight_of(queued))
        if isinstance(queued, RepeatedCommit):
            queued.release(_compute_code(result))
        else:
            queued.reply(_compute_reply(queued, result))
        if self._waiting:
            self._call_waiting()

    def _note_answered(self, queued: AnyCommit, weight: int) -> None:
        self.weight -= weight
        self.load.bytes -= weight
        statistics = self.statistics
        statistics.commits_unanswered_now -= 1
        statistics.commit_seconds.add(perf_counter() - queued.began_s)

    def call_after(self, callback: Callable[[], None]) -> None:
        """Call when all commits that were accepted before are answered."""
        self._waiting.append((self._next, callback))
        self._call_waiting()

    def _call_waiting(self) -> None:
        while self._waiting:
            before, callback = self._waiting[0]
            oldest = next(iter(self.commits), before)
            # What is settled came before what is not.
            if oldest < before or (self._settled and self._settled[0][0].number < before):
                return
            self._waiting.popleft()
            callback()

    # ------------------------------------------------------------------------------------ batches

    def take(self) -> Batch | None:
        """The next batch; ``None`` if the oldest commit is not checked yet, or there is none."""
        batch = Batch()
        for queued in self.commits.values():
            if isinstance(queued, RepeatedCommit):
                is_added = self._add_repeated(batch, queued)
            else:
                is_added = queued.checked is not None and self._add(batch, queued)
            if not is_added:
                break
        if not batch.commits:
            return None
        self._on_its_way = batch
        return batch

    def refuse_late(self, before_ms: int) -> None:
        """Commits that came before then are to be refused, wherever they are."""
        late = []
        for queued in self.commits.values():
            is_checked = isinstance(queued, RepeatedCommit) or queued.checked is not None
            if not is_checked or queued.since_ms > before_ms:
                break
            late.append(queued)
        batch = self._on_its_way
        last = -1 if batch is None else batch.commits[-1][0].number
        for queued in late:
            if batch is not None and queued.number <= last:
                self._keep_weight(batch, _weight_of(queued))
            self._settle(queued, CoordinatorLoadInProgress("The cluster does not answer in time."))

    def _keep_weight(self, batch: Batch, weight: int) -> None:
        """What is on its way takes memory until it is over."""
        batch.late_weight += weight
        self.weight += weight
        self.load.bytes += weight

    def _note_over(self, batch: Batch) -> None:
        self._on_its_way = None
        self.weight -= batch.late_weight
        self.load.bytes -= batch.late_weight

    def _add(self, batch: Batch, queued: QueuedCommit) -> bool:
        """Add what fits; whether all of the commit did."""
        spots: list[Spot] = []
        rows, left = batch.rows, queued.left
        while left and self._fits(batch, left[0]):
            row = left.popleft()
            spots.append(row.spot)
            rows[row.spot] = row
            batch.bytes += self._measure(row)
        if spots:
            batch.commits.append((queued, spots))
        return not left

    def _add_repeated(self, batch: Batch, queued: RepeatedCommit) -> bool:
        """``_add``; a row without metadata may replace any other."""
        row = queued.row
        size = self._measure(row)
        if batch.rows and batch.bytes + size > BATCH_BYTES_MAX:
            return False
        batch.rows[row.topic, row.partition] = row
        batch.bytes += size
        batch.commits.append((queued, ()))
        return True

    def _measure(self, row: Row) -> int:
        # Text is at most three bytes a UTF-16 unit; the key has the group and the topic.
        return ROW_BYTES + self.id_bytes + len(row.topic) + 3 * len(row.metadata)

    def _fits(self, batch: Batch, row: Row) -> bool:
        """Whether the row belongs in this batch.

        A row replaces that of an earlier commit only if the cluster can refuse it for no reason of
        its own: a longer text might be too long.
        """
        if batch.rows and batch.bytes + self._measure(row) > BATCH_BYTES_MAX:
            return False
        earlier = batch.rows.get(row.spot)
        return earlier is None or len(row.metadata) <= len(earlier.metadata)

    def settle(self, batch: Batch, codes: Mapping[Spot, ErrorCode]) -> None:
        """Note the results of a batch. Commits that are complete are to be answered."""
        self._note_over(batch)
        for queued, spots in batch.commits:
            # Without a result nobody knows whether it was done.
            if isinstance(queued, RepeatedCommit):
                code = codes.get(queued.row[:2], ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                self._settle(queued, code)
                continue
            for spot in spots:
                queued.codes[spot] = codes.get(spot, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            if not queued.left:
                self._settle(queued, None)

    def fail(self, batch: Batch, error: GroupError) -> None:
        """The commits of a batch are to be refused."""
        self._note_over(batch)
        for queued, _ in batch.commits:
            self._settle(queued, error)

    def _settle(self, queued: AnyCommit, result: Result) -> None:
        if self.commits.pop(queued.number, None) is not None:
            self._settled.append((queued, result))

    def answer_some(self) -> None:
        """Answer some of what is settled."""
        settled = self._settled
        for _ in range(min(ANSWERS_SLICE, len(settled))):
            queued, result = settled.popleft()
            self._answer(queued, result)

    def fail_all(self, error: GroupError) -> None:
        """Refuse everything that is not settled, and answer what is."""
        if self._on_its_way is not None:
            self._note_over(self._on_its_way)
        while self._settled:
            self.answer_some()
        for queued in list(self.commits.values()):
            self._fail(queued, error)


def _weight_of(queued: AnyCommit) -> int:
    return REPEATED_WEIGHT if isinstance(queued, RepeatedCommit) else queued.weight


def _compute_reply(queued: QueuedCommit, result: Result) -> Answer:
    if isinstance(result, OffsetCommitResponse | GroupError):
        return result
    assert queued.checked is not None
    return compute_answer(queued.checked, queued.codes)


def _compute_code(result: Result) -> ErrorCode:
    if isinstance(result, ErrorCode):
        return result
    assert isinstance(result, GroupError)
    return result.code
