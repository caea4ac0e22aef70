"""What workers did, by their own account, and what must never be in it; pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from muster import TopicPartition

Believes: TypeAlias = Callable[[], frozenset[TopicPartition]]
"""What a worker owns at this moment, as it believes."""


@dataclass
class Ledger:
    """Of one group. Times are seconds of one monotonic clock, without those it stood still.

    A worker that is about to act on a partition asks ``look``; what it has fetched and what was
    acknowledged to it comes here at once. ``read_within_s`` is how long a partition may stay unread
    while somebody lives who could read it.
    """

    name: str
    read_within_s: float
    violations: list[str] = field(default_factory=list)
    acknowledged: dict[TopicPartition, int] = field(default_factory=dict)
    commits: int = 0
    longest_gap_s: float = 0.0
    _believers: dict[Hashable, Believes] = field(default_factory=dict)
    _read_at: dict[TopicPartition, float] = field(default_factory=dict)
    _owners: set[tuple[TopicPartition, frozenset[Hashable]]] = field(default_factory=set)

    def enter(self, worker: Hashable, believes: Believes) -> None:
        self._believers[worker] = believes

    def leave(self, worker: Hashable) -> None:
        """It is dead, or done: it acts no more, whatever it believed."""
        self._believers.pop(worker, None)

    def look(self, now: float) -> None:
        """Who owns what at this moment."""
        owners: dict[TopicPartition, list[Hashable]] = {}
        for worker, believes in self._believers.items():
            for partition in believes():
                owners.setdefault(partition, []).append(worker)
        for partition, who in owners.items():
            found = (partition, frozenset(who))
            if len(who) > 1 and found not in self._owners:
                self._owners.add(found)
                names = " and ".join(sorted(map(str, who)))
                self.violations.append(
                    f"{now:.3f} {self.name}: {partition.partition} is owned by {names}"
                )

    def note_fetched(
        self, worker: Hashable, partition: TopicPartition, offset: int, floor: int, now: float
    ) -> None:
        """``floor`` was acknowledged to somebody before the worker asked."""
        if offset < floor:
            self.violations.append(
                f"{now:.3f} {self.name}: {worker} fetched {offset} of {partition.partition}, "
                f"and {floor} was acknowledged"
            )
        self._note_read(partition, now)

    def note_acknowledged(self, partition: TopicPartition, offset: int) -> None:
        self.commits += 1
        self.acknowledged[partition] = max(self.floor(partition), offset)

    def floor(self, partition: TopicPartition) -> int:
        """The highest offset that was acknowledged to anybody; 0 where none was."""
        return self.acknowledged.get(partition, 0)

    def begin(self, partitions: frozenset[TopicPartition], now: float) -> None:
        """From now on somebody lives who could read these."""
        self._read_at = dict.fromkeys(partitions, now)

    def end(self, now: float) -> None:
        """Nobody reads any more: what had not been read until now counts too."""
        for partition in self._read_at:
            self._note_read(partition, now)

    def _note_read(self, partition: TopicPartition, now: float) -> None:
        gap_s = now - self._read_at.get(partition, now)
        self._read_at[partition] = now
        self.longest_gap_s = max(self.longest_gap_s, gap_s)
        if gap_s > self.read_within_s:
            self.violations.append(
                f"{now:.3f} {self.name}: nobody read {partition.partition} for {gap_s:.1f} s"
            )


def add_up(tallies: Mapping[str, int]) -> str:
    """Totals for people, one line."""
    return ", ".join(f"{count} {what}" for what, count in sorted(tallies.items()))
