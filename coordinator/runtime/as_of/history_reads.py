"""Reads a group's past, and pages of the log, in worker processes beside the event loop.

A worker starts on demand, with limited memory and time. It is reused for a short while. If its
caller goes away it stops what it reads and is given back; it is killed if it does not stop soon.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from coordinator.runtime.api import Coordinator
from coordinator.runtime.as_of.history_answers import HistoryCommand
from coordinator.runtime.as_of.history_worker import (
    Damaged,
    HistoryAnswer,
    HistoryRequest,
    HistoryResult,
    NoMemory,
    NotKept,
    NotYet,
    PastOwnerships,
    RecordsRequest,
    WorkerOrders,
    WorkerRequest,
)
from coordinator.runtime.as_of.log_pages import LogPage, PageQuestion
from coordinator.runtime.as_of.reader_places import (
    WAITING_OF_ONE_MAX,
    Holder,
    NoPlace,
    Place,
    ReaderPlaces,
)
from coordinator.runtime.as_of.worker_process import Worker
from model.caller import INTERNAL
from model.commands.groups import DescribeGroups
from model.commands.offsets import OffsetFetch
from model.errors import ErrorCode, GroupError, UnknownServerError, UnknownTopicOrPartition
from model.ids import GroupId, LogOffset, LogPartition
from model.past.as_of import AsOf, AsOfOffset, AsOfTimestamp
from model.past.ownerships import OwnershipQuestion
from storage.log.group_history import GroupQuestion
from storage.log.record_pages import RecordPage, RecordQuestion
from storage.log.trim import HistoryStart
from storage.log_store import LogStore

log = structlog.get_logger()

IDLE_S = 10.0
"""An idle worker ends after this time."""

STOPS_WITHIN_S = 2.0
"""A worker that is to stop looks for that before each batch."""

_RECENT_MS = 10_000


class HistoryError(GroupError):
    """The past cannot be read, whatever the group was; ``about`` has machine-readable details."""

    def __init__(self, message: str, about: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.about = about or {}


class PositionNotKept(HistoryError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class PositionInFuture(HistoryError):
    code = ErrorCode.INVALID_REQUEST


class HistoryBusy(HistoryError):
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class HistoryTimedOut(HistoryError):
    code = ErrorCode.REQUEST_TIMED_OUT


class HistoryUnavailable(HistoryError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


@dataclass(frozen=True, slots=True)
class HistoryReadSettings:
    """``readers_max`` workers of ``memory_bytes`` each; ``timeout_ms`` includes waiting for one."""

    readers_max: int = 2
    timeout_ms: int = 60_000
    memory_bytes: int = 512 * 1024 * 1024


def _read_wall_ms() -> int:
    return time.time_ns() // 1_000_000


class HistoryReads:
    """Reads the store in ``folder``, which ``store`` has open and ``coordinator`` writes."""

    def __init__(
        self,
        folder: Path,
        store: LogStore,
        coordinator: Coordinator,
        settings: HistoryReadSettings,
        wall_ms: Callable[[], int] = _read_wall_ms,
    ) -> None:
        self._orders = WorkerOrders(folder.absolute(), coordinator.settings, settings.memory_bytes)
        self.store = store
        self._coordinator = coordinator
        self._settings = settings
        self._wall_ms = wall_ms
        self._places = ReaderPlaces(settings.readers_max)
        self._workers: set[Worker] = set()
        self._starting: set[asyncio.Task[Worker]] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._idle: list[Worker] = []
        self._is_stopped = False

    async def read(
        self,
        group_id: GroupId,
        as_of: AsOf,
        commands: Sequence[HistoryCommand],
        holder: Holder = "",
    ) -> HistoryAnswer:
        """Answer commands about one group. Raises ``HistoryError`` and ``GroupError``."""
        result = await self._read(group_id, as_of, tuple(commands), holder)
        assert isinstance(result, HistoryAnswer)
        return result

    async def read_ownerships(
        self, group_id: GroupId, until: AsOf | None, asked: OwnershipQuestion, holder: Holder = ""
    ) -> PastOwnerships:
        """Who owned what up to a position, or up to now. Raises as ``read`` does."""
        result = await self._read(group_id, until, asked, holder)
        assert isinstance(result, PastOwnerships)
        return result

    async def _read(
        self,
        group_id: GroupId,
        as_of: AsOf | None,
        asked: tuple[HistoryCommand, ...] | OwnershipQuestion,
        holder: Holder,
    ) -> HistoryAnswer | PastOwnerships:
        async with self._worker_is_free(holder) as place:
            question = await self._make_question(group_id, as_of)
            result = await self._ask(HistoryRequest(question, asked), place)
        return self._check(question, result)

    async def read_page(self, question: PageQuestion, holder: Holder = "") -> LogPage:
        """Read a page of the log. Raises ``HistoryError`` and ``GroupError``."""
        async with self._worker_is_free(holder) as place:
            result = await self._ask(question, place)
        match result:
            case LogPage():
                return result
            case NotKept(start):
                raise compute_not_read(question.partition, start)
            case _:
                raise self._compute_failure(result)

    async def read_records(
        self, question: RecordQuestion, holder: Holder = ""
    ) -> tuple[RecordPage, LogOffset]:
        """Read decoded records, the last one first; and where the durable log ends.

        Raises ``HistoryError`` and ``GroupError``.
        """
        if not 0 <= question.partition < self.store.partitions:
            raise UnknownTopicOrPartition(
                f"there is no log partition {question.partition}: there are {self.store.partitions}"
            )
        async with self._worker_is_free(holder) as place:
            # Durable records only, as in ``_make_question``.
            end = LogOffset(self.store.durable_offset(question.partition))
            result = await self._ask(RecordsRequest(question, end), place)
        if isinstance(result, RecordPage):
            return result, end
        raise self._compute_failure(result)

    @asynccontextmanager
    async def _worker_is_free(self, holder: Holder) -> AsyncIterator[Place]:
        """Wait for a worker, and limit the time of what it is asked."""
        timeout_s = self._settings.timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s), self._places.place(holder) as place:
                yield place
        except NoPlace as error:
            raise HistoryBusy(
                f"{WAITING_OF_ONE_MAX} of your reads of the log are in progress: ask again when "
                "one has ended"
                if error.is_own
                else "too many reads of the log are in progress; retry later"
            ) from None
        except TimeoutError:
            raise HistoryTimedOut(
                f"the log could not be read up to that position within {timeout_s:g} s"
            ) from None

    async def stop(self) -> None:
        """End all workers; requests still waiting get an error."""
        self._is_stopped = True
        if self._starting:
            await asyncio.wait(self._starting)
        while self._workers:
            await asyncio.gather(*(self._end(worker) for worker in list(self._workers)))
        if self._stopping:
            await asyncio.wait(self._stopping)

    async def _make_question(self, group_id: GroupId, as_of: AsOf | None) -> GroupQuestion:
        now_ms = self._wall_ms()
        partition = self._coordinator.partition_of(group_id)
        if isinstance(as_of, AsOfTimestamp) and as_of.timestamp_ms > now_ms - _RECENT_MS:
            await self._wait_until_settled(group_id)
        # Read durable records only: others may still be lost, and then are part of no past.
        end = LogOffset(self.store.durable_offset(partition))
        if as_of is None:
            # Not the time: batches may be dated ahead of the clock, as after an import.
            as_of = AsOfOffset(LogOffset(end - 1)) if end else AsOfTimestamp(now_ms)
        return GroupQuestion(partition, group_id, as_of, end, now_ms)

    async def _wait_until_settled(self, group_id: GroupId) -> None:
        """Wait until the group's current state is durable.

        Reads are answered only then, even those that fail.
        """
        for command in (
            DescribeGroups(INTERNAL, (group_id,)),
            OffsetFetch(INTERNAL, group_id, ()),
        ):
            with suppress(GroupError):
                await self._coordinator.call(command)

    async def _ask(self, request: WorkerRequest, place: Place) -> HistoryResult:
        """Ask a worker. An idle one may have ended meanwhile; then ask another.

        Whoever is cancelled leaves the ``place`` when the worker is free again, or gone.
        """
        while True:
            if self._is_stopped:
                raise HistoryUnavailable("the server is stopping")
            was_idle = bool(self._idle)
            worker = self._idle.pop() if was_idle else await self._start(place)
            try:
                result = await worker.ask(request)
            except EOFError:
                exit_code = await asyncio.shield(self._end(worker))
                if not was_idle and not self._is_stopped:
                    log.error("history_worker_died", exit_code=exit_code)
                    raise HistoryBusy(
                        "the process that read the log has ended, probably for lack of memory; or "
                        "Muster was upgraded since the server was started, which then has to be "
                        "restarted: the server's log has more"
                    ) from None
            except BaseException:
                place.busy = self._stop_reading(worker)
                raise
            else:
                self._put_back(worker)
                return result

    def _stop_reading(self, worker: Worker) -> asyncio.Task[None]:
        """Stop what a worker reads for nobody; it is idle then, or killed."""

        async def stop() -> None:
            if await worker.finish(STOPS_WITHIN_S):
                self._put_back(worker)
            else:
                await self._end(worker)

        stopping = asyncio.create_task(stop(), name="history-worker-stop")
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)
        return stopping

    async def _start(self, place: Place) -> Worker:
        """Start a worker. One whose caller is cancelled meanwhile is idle when it has started."""
        starting = asyncio.create_task(self._start_worker(), name="history-worker-start")
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            place.busy = asyncio.create_task(self._keep(starting), name="history-worker-stop")
            self._stopping.add(place.busy)
            place.busy.add_done_callback(self._stopping.discard)
            raise

    async def _start_worker(self) -> Worker:
        worker = Worker()
        try:
            await worker.start(self._orders)
        except BaseException:
            worker.kill()
            raise
        self._workers.add(worker)
        return worker

    async def _keep(self, starting: asyncio.Task[Worker]) -> None:
        await asyncio.wait((starting,))
        if not starting.cancelled() and starting.exception() is None:
            self._put_back(starting.result())

    def _put_back(self, worker: Worker) -> None:
        if self._is_stopped:
            self._end(worker)
            return
        self._idle.append(worker)
        worker.retire = asyncio.get_running_loop().call_later(IDLE_S, self._end, worker)

    def _end(self, worker: Worker) -> asyncio.Task[int]:
        """Kill the worker; it counts as running until it is gone."""
        if worker in self._idle:
            self._idle.remove(worker)
        ending = worker.kill()
        ending.add_done_callback(lambda _: self._workers.discard(worker))
        return ending

    def _check(
        self, question: GroupQuestion, result: HistoryResult
    ) -> HistoryAnswer | PastOwnerships:
        match result:
            case HistoryAnswer() | PastOwnerships():
                return result
            case NotKept(start):
                raise _compute_not_kept(question, start)
            case NotYet(last):
                raise PositionInFuture(
                    f"as_of lies in the future: log partition {question.partition} ends with "
                    f"offset {last.offset}, and the time is {question.now_ms} ms since 1970"
                )
            case _:
                raise self._compute_failure(result)

    def _compute_failure(self, result: HistoryResult) -> GroupError:
        match result:
            case NoMemory():
                size = self._settings.memory_bytes >> 20
                return HistoryBusy(f"what was asked for does not fit in {size} MiB")
            case Damaged(cause):
                log.critical("store_read_failed", cause=cause)
                return UnknownServerError("The log cannot be read; see the server's log.")
            case _:
                raise AssertionError(f"no answer to this request: {result}")


def _compute_not_kept(question: GroupQuestion, start: HistoryStart) -> PositionNotKept:
    first = max(start.offset - 1, 0)
    return PositionNotKept(
        f"the history of log partition {question.partition} goes back to offset {first} and to "
        f"{start.before_ms} ms since 1970, not further",
        {
            "log_partition": str(question.partition),
            "earliest_offset": str(first),
            "earliest_timestamp_ms": str(start.before_ms),
        },
    )


def compute_not_read(partition: LogPartition, start: HistoryStart) -> PositionNotKept:
    """The error of a reading of the log that begins before the history."""
    return PositionNotKept(
        f"the history of log partition {partition} begins at offset {start.offset}, after "
        f"{start.before_ms} ms since 1970: of older records only the last of each key is there, "
        "which with_compacted reads",
        {
            "log_partition": str(partition),
            "history_start_offset": str(start.offset),
            "history_before_ms": str(start.before_ms),
        },
    )
