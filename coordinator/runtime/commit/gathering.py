"""The entries gathered for the next write, and their size."""

from __future__ import annotations

from time import perf_counter

from coordinator.runtime.commit.entries import CommitEntry, Entry
from coordinator.runtime.loop.stats import Stats
from model.log.transaction_records import count_records

GATHERING_ITERATIONS_MAX = 16
"""A flush waits at most this many event-loop iterations, while each of them adds records."""


class Gathering:
    """The gathered entries, in order. A write is full at ``records_max`` records.

    ``has_commits_alone`` says that only offsets were gathered since the last sync began.
    """

    __slots__ = (
        "_iterations",
        "_records_max",
        "_seen_records",
        "_stats",
        "_waiting",
        "began_s",
        "entries",
        "has_commits_alone",
        "records",
    )

    def __init__(self, records_max: int, stats: Stats) -> None:
        self._records_max = records_max
        self._stats = stats
        self.entries: list[Entry | CommitEntry] = []
        self.records = 0
        self.has_commits_alone = True
        self._waiting = 0
        self._seen_records = 0
        self._iterations = 0
        self.began_s = 0.0
        """When the first entry came."""

    def add(self, entry: Entry) -> None:
        """Add the records of one outcome."""
        if not self.entries:
            self.began_s = perf_counter()
        self.entries.append(entry)
        self.has_commits_alone = False
        self.records += len(entry.records)
        if entry.transaction is not None:
            self.records += count_records(entry.transaction)
            self._waiting += entry.waiting
        for commits in entry.commits:
            count = len(commits.offsets.partitions)
            self.records += count
            self._stats.offsets_committed += count

    def add_commit(self, entry: CommitEntry) -> None:
        """Add offsets committed with a ticket."""
        if not self.entries:
            self.began_s = perf_counter()
        self.entries.append(entry)
        count = len(entry[1].partitions)
        self.records += count
        self._stats.offsets_committed += count

    def is_full(self, more: int = 0) -> bool:
        """Whether the write is full; the pending offsets that markers end count too."""
        return self.records + self._waiting + more >= self._records_max

    def is_growing(self) -> bool:
        """Whether the last event-loop iteration added records, so that a flush should wait.

        While the loop waits for a sync it reads nothing, so one sync should cover every commit that
        is arriving, not only the first.
        """
        before, self._iterations = self._seen_records, self._iterations + 1
        self._seen_records = self.records
        if self.records > before and self._iterations < GATHERING_ITERATIONS_MAX:
            return True
        self._seen_records = self._iterations = 0
        return False

    def clear(self) -> None:
        """Drop the entries, which are written."""
        self.entries = []
        self.records = self._waiting = 0
