"""The process that reads a store's past: answers requests until its input ends.

Its parent (``history_reads``) writes pickled messages to standard input and reads the answers from
standard output, each after its length. The worker takes no lock, writes nothing to the store, and
ends with its parent.
"""

from __future__ import annotations

import errno
import os
import pickle
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import BinaryIO, NamedTuple, TypeVar, assert_never, cast

from coordinator.runtime.as_of.group_records import find_topics
from coordinator.runtime.as_of.history_answers import HistoryCommand, HistoryResponse, PastGroup
from coordinator.runtime.as_of.log_pages import LogPage, PageQuestion, read_page
from coordinator.runtime.as_of.ownership_history import read_ownerships
from coordinator.runtime.as_of.result_parts import encode_parts
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import LogOffset, LogPartition
from model.log.side_records import TopicSideKey, TopicSideValue
from model.past.as_of import LogPosition
from model.past.ownerships import OwnershipQuestion, Ownerships
from model.topics import Topic, TopicImage
from storage.codec.errors import CodecError
from storage.log.group_history import (
    BeyondHistory,
    GroupQuestion,
    InFuture,
    LogTooShort,
    fold_group,
)
from storage.log.record_pages import RecordLine, RecordPage, RecordQuestion, read_record_page
from storage.log.trim import HistoryStart, read_history_start
from storage.log_store import LogStore, StoreCorrupt, StoreError
from storage.rocks.rocks_reader import RocksLogReader, open_store_reader
from storage.side_codec import decode_side

LENGTH = struct.Struct(">Q")
_NICENESS = 10
_SNAPSHOT_S = 60.0
"""A snapshot is not used longer: until it is closed, its files take space after their deletion."""

_Result = TypeVar("_Result")


class WorkerOrders(NamedTuple):
    """The first message. ``data_bytes`` limits the memory of the process."""

    folder: Path
    settings: CoordinatorSettings
    data_bytes: int


class HistoryRequest(NamedTuple):
    """Commands about one group at one position, or the question what led there."""

    question: GroupQuestion
    commands: tuple[HistoryCommand, ...] | OwnershipQuestion


class RecordsRequest(NamedTuple):
    """Decoded records of the log, which is durable up to ``end``."""

    question: RecordQuestion
    end: LogOffset

    @property
    def partition(self) -> LogPartition:
        return self.question.partition


WorkerRequest = HistoryRequest | PageQuestion | RecordsRequest


class HistoryAnswer(NamedTuple):
    """A response, or an error, to each command."""

    position: LogPosition
    responses: tuple[HistoryResponse | GroupError, ...]


class PastOwnerships(NamedTuple):
    """Who owned what up to a position."""

    position: LogPosition
    ownerships: Ownerships


class NotKept(NamedTuple):
    """The log's history begins later."""

    start: HistoryStart


class NotYet(NamedTuple):
    """The log does not reach that position yet."""

    last: LogPosition


class NoMemory(NamedTuple):
    """The group's state does not fit in memory."""


class Stopped(NamedTuple):
    """Nobody wants the answer any more."""


class Damaged(NamedTuple):
    """The log cannot be read; ``cause`` is one line for the server's log."""

    cause: str


HistoryResult = (
    HistoryAnswer
    | PastOwnerships
    | LogPage
    | RecordPage
    | NotKept
    | NotYet
    | NoMemory
    | Stopped
    | Damaged
)


def _is_for_want_of_memory(error: Exception) -> bool:
    """Whether the store said of the process's limit of memory that the log cannot be read."""
    cause = error.__cause__
    return isinstance(cause, MemoryError) or getattr(cause, "errno", None) == errno.ENOMEM


class ReadingStopped(Exception):
    """Ends a reading that nobody wants any more."""


class HistoryReader:
    """Reads one snapshot of the store, and opens a newer one when a request needs it.

    ``is_stopped`` is asked before each batch whether nobody wants the answer any more.
    """

    def __init__(
        self,
        folder: Path,
        settings: CoordinatorSettings,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_stopped = is_stopped
        self._folder = folder
        self._settings = settings
        self._reader: RocksLogReader | None = None
        self._opened_s = 0.0
        self._image = TopicImage()

    def read(self, request: WorkerRequest) -> HistoryResult:
        """Answer a request. Raises only for bugs."""
        try:
            match request:
                case HistoryRequest(question, _):
                    return self._read(question, lambda reader: self._answer(reader, request))
                case PageQuestion():
                    return self._read(request, lambda reader: _read_page(reader, request))
                case RecordsRequest():
                    return self._read(request, lambda reader: _read_records(reader, request))
                case _:
                    assert_never(request)
        except BeyondHistory as error:
            return NotKept(error.start)
        except InFuture as error:
            return NotYet(error.last)
        except ReadingStopped:
            return Stopped()
        except MemoryError:
            return NoMemory()
        except (StoreError, CodecError) as error:
            return NoMemory() if _is_for_want_of_memory(error) else Damaged(str(error))

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read(
        self,
        asked: GroupQuestion | PageQuestion | RecordsRequest,
        read: Callable[[RocksLogReader], _Result],
    ) -> _Result:
        if self._reader is not None and time.monotonic() < self._opened_s + _SNAPSHOT_S:
            try:
                return read(self._reader)
            except LogTooShort:
                pass
        self.close()
        self._reader = open_store_reader(self._folder)
        self._reader.before_batch = self._check_wanted
        self._opened_s = time.monotonic()
        self._image = _read_image(self._reader)
        try:
            return read(self._reader)
        except LogTooShort:
            raise StoreCorrupt(
                f"log partition {asked.partition} was durable up to {asked.end} but ends before "
                "that"
            ) from None

    def _check_wanted(self) -> None:
        if self._is_stopped():
            raise ReadingStopped

    def _answer(
        self, reader: RocksLogReader, request: HistoryRequest
    ) -> HistoryAnswer | PastOwnerships:
        start = _read_start(reader, request.question.partition)
        asked = request.commands
        if isinstance(asked, OwnershipQuestion):
            found = read_ownerships(reader, request.question, asked, start, self._image)
            return PastOwnerships(*found)
        history = fold_group(reader, request.question, start)
        group = PastGroup(reader, history, self._settings, self._image)
        responses = tuple(_answer(group, command) for command in asked)
        return HistoryAnswer(history.position, responses)


def _read_page(reader: RocksLogReader, question: PageQuestion) -> LogPage:
    return read_page(reader, question, _read_start(reader, question.partition))


def _read_records(reader: RocksLogReader, request: RecordsRequest) -> RecordPage:
    if reader.next_offset(request.partition) < request.end:
        raise LogTooShort
    before = LogOffset(min(request.question.before, request.end))
    page = read_record_page(reader, request.question._replace(before=before))
    return page._replace(lines=tuple(map(_add_embedded_topics, page.lines)))


def _add_embedded_topics(line: RecordLine) -> RecordLine:
    """Members of classic groups name topics in bytes that no JSON shows decoded."""
    if line.key is None:
        return line
    return line._replace(topics=line.topics | (find_topics(line) or frozenset()))


def _read_start(reader: RocksLogReader, partition: LogPartition) -> HistoryStart:
    # ``read_history_start`` uses only methods that the reader has.
    return read_history_start(cast(LogStore, reader), partition)


def _answer(group: PastGroup, command: HistoryCommand) -> HistoryResponse | GroupError:
    try:
        return group.answer(command)
    except GroupError as error:
        return error


def _read_image(reader: RocksLogReader) -> TopicImage:
    topics = []
    for key, value in reader.side():
        match decode_side(key, value):
            case (TopicSideKey(name), TopicSideValue(topic_id, partitions, racks)):
                topics.append(Topic(name, topic_id, partitions, racks))
            case _:
                pass
    by_name = {topic.name: topic for topic in topics}
    return TopicImage(0, by_name, {topic.topic_id: topic for topic in topics})


# ------------------------------------------------------------------------------------- the process


def run_worker(requests: Iterator[bytes], answers: BinaryIO, stop: Event) -> None:
    """Answer requests until there are no more. ``stop`` ends the one that is being answered."""
    orders = pickle.loads(next(requests))  # from the parent process
    assert isinstance(orders, WorkerOrders)
    resource.setrlimit(resource.RLIMIT_DATA, (orders.data_bytes, orders.data_bytes))
    reader = HistoryReader(orders.folder, orders.settings, stop.is_set)
    for request in requests:
        # The parent asks again only after an answer: what was to be stopped is answered.
        stop.clear()
        result = reader.read(pickle.loads(request))
        parts = encode_parts(result)
        answers.write(LENGTH.pack(len(parts)))
        for data in parts:
            answers.write(LENGTH.pack(len(data)) + data)
        answers.flush()
    reader.close()


def read_messages(source: BinaryIO) -> Iterator[bytes]:
    """The messages of a pipe until it ends."""
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(head)
        yield source.read(length)


def _watch(requests: SimpleQueue[bytes], stop: Event) -> None:
    """Queue the messages; an empty one stops what is being read.

    The pipe ends when the parent is gone; then nobody needs the answers.
    """
    for message in read_messages(sys.stdin.buffer):
        if message:
            requests.put(message)
        else:
            stop.set()
    if tempfile.tempdir is not None:
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    os._exit(0)


def main(folder: str) -> None:
    """Run the worker. ``folder`` is its own temporary folder, removed in the end."""
    tempfile.tempdir = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    # Anything else that prints must not corrupt the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: SimpleQueue[bytes] = SimpleQueue()
    stop = Event()
    Thread(target=_watch, args=(requests, stop), daemon=True).start()
    run_worker(iter(requests.get, None), answers, stop)
