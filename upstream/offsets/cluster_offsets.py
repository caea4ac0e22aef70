"""Committed offsets in the cluster: commits are checked here, and made there by the sentinel.

The commits of a group go one request after another, and what comes meanwhile is gathered for the
next one. A commit is acknowledged when the cluster has acknowledged it, and only then. Its client
waits no longer than in Kafka, but what is to be sent next does: no commit is overtaken.

An answer that is lost leaves open whether the commit is done, and when: the broker may still have
the request. Nothing is sent after it in the same name, for that would be taken back by it. So the
sentinel joins again first (``Takeovers.note_lost_answer``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import structlog

from coordinator.runtime.api import Answer, Coordinator, Release, Reply
from model.commands.offsets import DeleteOffsets, OffsetCommit, OffsetFetch
from model.commands.places import CheckCommit, CheckTxnCommit
from model.commands.transactions import TxnOffsetCommit
from model.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    GroupError,
    NonEmptyGroup,
    NotCoordinator,
    UnknownServerError,
)
from model.ids import GroupId
from model.responses.offsets import OffsetCommitResponse
from model.responses.response import Response
from upstream.cluster.cluster import Cluster
from upstream.hooks import Takeovers
from upstream.offsets.checked_commits import accept_rows, compute_answer
from upstream.offsets.commit_queue import (
    Batch,
    CommitQueue,
    Load,
    QueuedCommit,
)
from upstream.offsets.commit_requests import CommitRequests
from upstream.offsets.commit_tickets import ClusterCommitTicket, make_ticket
from upstream.offsets.offset_fetches import fetch_offsets
from upstream.offsets.offset_requests import Row, Spot
from upstream.offsets.tasks import AnsweringTasks
from upstream.statistics import UpstreamStatistics

log = structlog.get_logger()

TIMEOUT_MS: Final = 5_000
"""A commit that the cluster has not answered is refused then, as in Kafka one that is not written
(``offsets.commit.timeout.ms``), and so is a fetch: heartbeats wait behind them on many clients'
connections. The code is one with which clients stay: this is their coordinator. The request goes
on, for as long as one may take."""
WATCH_S: Final = 0.5
"""How often it is looked for commits whose time is over."""
FETCH_MS: Final = 1_000
"""What is left to a fetch at least, whatever it has waited for."""
TOO_MANY: Final = "Too many requests wait for the cluster."


@dataclass(frozen=True, slots=True)
class OffsetLimits:
    """How much may wait: bytes of commits of a group and of all; fetches and transactions."""

    group_bytes: int = 8 << 20
    all_bytes: int = 64 << 20
    running: int = 4_000


DEFAULT_LIMITS: Final = OffsetLimits()


class ClusterOffsets:
    """The offsets of groups that are here, in the cluster. Implements ``Offsets``.

    ``coordinator`` is the runtime, ``now_ms`` a monotonic clock.
    """

    are_in_cluster = True

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        takeovers: Takeovers,
        *,
        now_ms: Callable[[], int],
        timeout_ms: int = 30_000,
        limits: OffsetLimits = DEFAULT_LIMITS,
        statistics: UpstreamStatistics | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._limits = limits
        self._statistics = statistics or UpstreamStatistics()
        self._requests = CommitRequests(coordinator, cluster, takeovers, now_ms, timeout_ms)
        self._queues: dict[GroupId, CommitQueue] = {}
        self._load = Load()
        self._sending: dict[GroupId, asyncio.Task[None]] = {}
        self._is_watching = False
        self._closed: set[GroupId] = set()
        self._transactions: dict[GroupId, set[asyncio.Task[None]]] = {}
        self._tasks = AnsweringTasks(limits.running)
        self._is_stopping = False

    async def stop(self) -> None:
        """Accept nothing more; everything is answered."""
        self._is_stopping = True
        await self._tasks.stop()
        for queue in list(self._queues.values()):
            queue.fail_all(CoordinatorNotAvailable("The coordinator is stopping."))

    async def close(self, group_id: GroupId) -> None:
        """Accept no commits of a group any more; returns when all before are over."""
        self._closed.add(group_id)
        answered = asyncio.Event()
        self._call_after(group_id, answered.set)
        await answered.wait()
        sending = self._sending.get(group_id)
        running = [*self._transactions.get(group_id, ()), *([sending] if sending else ())]
        await asyncio.gather(*running, return_exceptions=True)

    def reopen(self, group_id: GroupId) -> None:
        """Accept the group's commits again."""
        self._closed.discard(group_id)

    def _find_refusal(self, group_id: GroupId) -> GroupError | None:
        if self._is_stopping:
            return CoordinatorNotAvailable("The coordinator is stopping.")
        if group_id in self._closed:
            return NotCoordinator(f"The group {group_id} is going back to the cluster.")
        return None

    # -------------------------------------------------------------------------------- commits

    def commit(self, command: OffsetCommit, reply: Reply) -> None:
        """Check a commit and queue it; answered as the cluster answers."""
        group_id = command.group_id
        refusal = self._find_refusal(group_id)
        if refusal is not None:
            reply(refusal)
            return
        queue = self._find_queue(group_id)
        if self._is_full(queue):
            reply(CoordinatorLoadInProgress(TOO_MANY))
            return
        queued = queue.add(command, reply, self._now_ms())
        self._coordinator.submit(
            CheckCommit(command), partial(self._on_checked, group_id, queue, queued)
        )

    def ticket(self, command: OffsetCommit) -> ClusterCommitTicket | None:
        """A ticket for repetitions of a commit of one partition, while its group stays here."""
        return make_ticket(self._coordinator, command, self._commit_row)

    def _commit_row(self, group_id: GroupId, row: Row, release: Release) -> bool:
        """Queue what a ticket has checked; ``False`` if ``commit`` has to refuse it."""
        if self._is_stopping or group_id in self._closed:
            return False
        queue = self._find_queue(group_id)
        if self._is_full(queue):
            return False
        queue.add_repeated(row, release, self._now_ms())
        self._go_on(group_id, queue)
        return True

    def _is_full(self, queue: CommitQueue) -> bool:
        limits = self._limits
        return queue.weight > limits.group_bytes or self._load.bytes > limits.all_bytes

    def _find_queue(self, group_id: GroupId) -> CommitQueue:
        queue = self._queues.get(group_id)
        if queue is None:
            queue = self._queues[group_id] = CommitQueue(
                len(group_id.encode()), self._load, self._statistics
            )
            if not self._is_watching:
                self._is_watching = True
                self._tasks.run(self._watch())
        return queue

    async def _watch(self) -> None:
        """Answer commits whose time is over, until none waits."""
        try:
            while self._queues:
                await asyncio.sleep(WATCH_S)
                before_ms = self._now_ms() - TIMEOUT_MS
                for group_id, queue in list(self._queues.items()):
                    queue.refuse_late(before_ms)
                    if queue.has_settled:
                        await _answer_settled(queue)
                        self._go_on(group_id, queue)
        finally:
            self._is_watching = False

    def _call_after(self, group_id: GroupId, callback: Callable[[], None]) -> None:
        """Call when all commits of the group that were accepted before are answered."""
        queue = self._queues.get(group_id)
        if queue is None:
            callback()
        else:
            queue.call_after(callback)

    def _on_checked(
        self, group_id: GroupId, queue: CommitQueue, queued: QueuedCommit, answer: Answer
    ) -> None:
        if isinstance(answer, OffsetCommitResponse):
            queue.note_checked(queued, answer)
        else:
            assert isinstance(answer, GroupError)
            queue.end(queued, answer)
        self._go_on(group_id, queue)

    def _go_on(self, group_id: GroupId, queue: CommitQueue) -> None:
        """Send what is ready, unless that is being done."""
        if group_id in self._sending:
            return
        batch = queue.take()
        if batch is not None:
            self._sending[group_id] = self._tasks.run(self._send(group_id, queue, batch))
        elif queue.is_empty and self._queues.get(group_id) is queue:
            del self._queues[group_id]

    async def _send(self, group_id: GroupId, queue: CommitQueue, first: Batch) -> None:
        batch: Batch | None = first
        try:
            while batch is not None or queue.has_settled:
                if batch is not None:
                    await self._send_batch(group_id, queue, batch)
                else:
                    queue.answer_some()
                    if queue.has_settled:
                        await asyncio.sleep(0)
                batch = queue.take()
        except asyncio.CancelledError:
            queue.fail_all(CoordinatorNotAvailable("The coordinator is stopping."))
            raise
        except Exception as bug:
            log.exception("committing_failed", group_id=group_id)
            queue.fail_all(UnknownServerError(repr(bug)))
        finally:
            del self._sending[group_id]
        self._go_on(group_id, queue)

    async def _send_batch(self, group_id: GroupId, queue: CommitQueue, batch: Batch) -> None:
        statistics, commits = self._statistics, len(batch.commits)
        statistics.commit_batches += 1
        statistics.commits += commits
        statistics.commits_in_flight_now += commits
        asking = self._requests.commit(group_id, list(batch.rows.values()))
        try:
            codes = await (_ask_while_answering(asking, queue) if queue.has_settled else asking)
        except GroupError as error:
            queue.fail(batch, error.with_traceback(None))
        else:
            queue.settle(batch, codes)
        finally:
            statistics.commits_in_flight_now -= commits

    # ---------------------------------------------------------------------------- transactions

    def commit_transaction(self, command: TxnOffsetCommit, reply: Reply) -> None:
        """Check a commit, and pass it on to the client's transaction in the cluster."""
        group_id = command.group_id

        def on_checked(answer: Answer) -> None:
            refusal = self._find_refusal(group_id)
            if refusal is not None or not isinstance(answer, OffsetCommitResponse):
                reply(refusal or answer)
                return
            task = self._answer(self._commit_transaction(command, answer), reply)
            if task is not None:
                self._note_transaction(group_id, task)

        self._coordinator.submit(CheckTxnCommit(command), on_checked)

    def _note_transaction(self, group_id: GroupId, task: asyncio.Task[None]) -> None:
        tasks = self._transactions.setdefault(group_id, set())
        tasks.add(task)

        def forget(done: asyncio.Task[None]) -> None:
            tasks.discard(done)
            if not tasks and self._transactions.get(group_id) is tasks:
                del self._transactions[group_id]

        task.add_done_callback(forget)

    async def _commit_transaction(
        self, command: TxnOffsetCommit, checked: OffsetCommitResponse
    ) -> Response:
        rows = accept_rows(command.topics, checked)
        if not rows:
            return checked
        codes = await self._requests.commit_transaction(command, rows)
        return compute_answer(checked, codes)

    def _answer(
        self, computing: Coroutine[Any, Any, Response], reply: Reply
    ) -> asyncio.Task[None] | None:
        if self._tasks.is_full or self._is_stopping:
            computing.close()
            reply(CoordinatorLoadInProgress(TOO_MANY))
            return None
        return self._tasks.answer(computing, reply)

    # --------------------------------------------------------------------------------- fetches

    def fetch(self, command: OffsetFetch, reply: Reply) -> None:
        """Check a fetch, and ask the cluster once the commits before it are answered."""
        ready = [False, False]
        end_ms = self._now_ms() + TIMEOUT_MS

        def note(which: int, answer: Answer | None) -> None:
            if isinstance(answer, GroupError):
                reply(answer)
                return
            ready[which] = True
            if all(ready):
                self._answer(self._fetch(command, end_ms), reply)

        self._call_after(command.group_id, lambda: note(0, None))
        self._coordinator.submit(replace(command, topics=()), partial(note, 1))

    async def _fetch(self, command: OffsetFetch, end_ms: int) -> Response:
        """Who gives up gives up alone: the request is not late yet, and ends no connection."""
        image = self._coordinator.image
        try:
            async with asyncio.timeout(max(end_ms - self._now_ms(), FETCH_MS) / 1_000):
                return await fetch_offsets(self._cluster, image, command, self._timeout_ms)
        except TimeoutError:
            raise CoordinatorLoadInProgress("The cluster does not answer in time.") from None

    def delete(self, command: DeleteOffsets, reply: Reply) -> None:
        """Refuse: in the cluster the sentinel counts as subscribed to every topic."""
        reply(
            NonEmptyGroup(
                f"The offsets of group {command.group_id} are in the cluster, where Muster is a "
                "member of the group: release the group to delete some of them."
            )
        )


async def _answer_settled(queue: CommitQueue) -> None:
    while queue.has_settled:
        queue.answer_some()
        await asyncio.sleep(0)


async def _ask_while_answering(
    asking: Coroutine[Any, Any, dict[Spot, ErrorCode]], queue: CommitQueue
) -> dict[Spot, ErrorCode]:
    """Answer the batch before while the cluster has this one."""
    task = asyncio.get_running_loop().create_task(asking)
    try:
        await asyncio.sleep(0)
        while queue.has_settled:
            queue.answer_some()
            await asyncio.sleep(0)
        return await task
    finally:
        task.cancel()
