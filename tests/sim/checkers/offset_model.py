"""What a fetch may say of each offset, given what was asked for and what was acknowledged.

It knows nothing of the log: commits in the order in which the server took them, how transactions
were decided, what was answered. Each commit has an offset of its own, so that what a fetch shows
says which commit it is of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from model.ids import LogPartition
from tests.sim.checkers.violations import check

OffsetPlace = tuple[str, str, int]
"""Group, topic name, partition."""

NO_OFFSET = -1

LOG_PARTITIONS = 3
"""Of the simulated server."""


@dataclass(eq=False)
class Transaction:
    """One transaction of a producer, as its coordinator knows it.

    ``decision`` is whether it is committed, ``None`` while that is open. ``ended`` are the log
    partitions in which a marker for it was answered.
    """

    producer_id: int
    epoch: int
    decision: bool | None = None
    ended: set[LogPartition] = field(default_factory=set)
    is_marked: set[LogPartition] = field(default_factory=set)
    """Where a marker may have arrived."""
    timed_out: set[LogPartition] = field(default_factory=set)
    """Where the server has aborted it, for nobody had ended it."""
    timed_out_groups: set[str] = field(default_factory=set)
    """Those in which it had something then: in others nobody knows that it is over."""
    acknowledged: dict[OffsetPlace, tuple[int, int]] = field(default_factory=dict)
    """By place the index of the last commit that was acknowledged, and the deletions by then."""

    def is_over(self, group_id: str, partition: LogPartition) -> bool:
        """Whether the server must not let anything of it into the group, which is there."""
        is_known = partition not in self.timed_out or group_id in self.timed_out_groups
        return partition in self.ended and is_known


@dataclass
class Taken:
    """What a fetch or a commit found when the server took it."""

    index: int
    deletions: int


@dataclass
class _Commits:
    """Commits of one place in the order in which the server took them.

    ``floor`` is the index of the last one that must not be lost: it was acknowledged, and if it is
    of a transaction so was the marker. -1 if there is none or it may be deleted since. What is
    before ``gone`` was deleted for good.
    """

    offsets: list[int] = field(default_factory=list)
    transactions: list[Transaction | None] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    floor: int = -1
    gone: int = 0
    deletions: int = 0


class OffsetModel:
    """S11 for commits, S15 (the last commit by its place in the log), S16, S19, and S20."""

    def __init__(self) -> None:
        self._places: dict[OffsetPlace, _Commits] = {}
        self._transactions: dict[int, Transaction] = {}
        self._once_deleted: set[str] = set()
        """Topics. A deletion that begins again after a crash cannot tell what a transaction has
        committed for a later topic of the name, without its id, from what it did for the earlier.
        """

    def _commits(self, place: OffsetPlace) -> _Commits:
        return self._places.setdefault(place, _Commits())

    def places(self) -> list[OffsetPlace]:
        """All that anybody committed."""
        return list(self._places)

    # --------------------------------------------------------------------------------- commits

    def note_offset_of(self, transaction: Transaction, offset: int) -> None:
        """The offset will be committed in a transaction."""
        self._transactions[offset] = transaction

    def transaction_of(self, offset: int) -> Transaction | None:
        """In which transaction the offset is committed."""
        return self._transactions.get(offset)

    def note_taken(self, place: OffsetPlace, offset: int) -> Taken:
        """The server is about to take a commit; what to give to ``note_answered``."""
        commits = self._commits(place)
        commits.offsets.append(offset)
        commits.transactions.append(self._transactions.get(offset))
        return Taken(len(commits.offsets) - 1, commits.deletions)

    def note_answered(self, place: OffsetPlace, taken: Taken, is_accepted: bool) -> None:
        """The commit was answered. One of a transaction waits for its marker."""
        commits = self._commits(place)
        transaction = commits.transactions[taken.index]
        if not is_accepted:
            commits.refused.add(taken.index)
        elif transaction is not None:
            known, _ = transaction.acknowledged.get(place, (-1, 0))
            if taken.index > known:
                transaction.acknowledged[place] = taken.index, taken.deletions
        elif commits.deletions == taken.deletions:
            commits.floor = max(commits.floor, taken.index)

    def note_ended(self, transaction: Transaction, places: Iterable[OffsetPlace]) -> None:
        """A marker was answered: S16, what it commits is there now, all of it."""
        for place in places:
            index, deletions = transaction.acknowledged.get(place, (-1, 0))
            commits = self._commits(place)
            is_kept = place[1] not in self._once_deleted and commits.deletions == deletions
            if transaction.decision and is_kept:
                commits.floor = max(commits.floor, index)

    # ------------------------------------------------------------------------------- deletions

    def note_topic_deleted(self, topic: str) -> None:
        """A deletion was taken: from now on its offsets may be gone."""
        self._once_deleted.add(topic)
        self.note_deleting(place for place in self._places if place[1] == topic)

    def note_deleting(
        self, places: Iterable[OffsetPlace]
    ) -> list[tuple[OffsetPlace, int, int, int]]:
        """From now on these may be gone; what to give to ``note_deleted`` or ``note_kept``."""
        found = []
        for place in list(places):
            commits = self._commits(place)
            commits.deletions += 1
            found.append((place, commits.floor, len(commits.offsets), commits.deletions))
            commits.floor = -1
        return found

    def note_deleted(self, deleting: Iterable[tuple[OffsetPlace, int, int, int]]) -> None:
        """S19: what was there before is never seen again."""
        for place, _, index, _ in deleting:
            commits = self._commits(place)
            commits.gone = max(commits.gone, index)

    def note_kept(self, deleting: Iterable[tuple[OffsetPlace, int, int, int]]) -> None:
        """It was refused: all is as it was."""
        for place, floor, _, deletions in deleting:
            commits = self._commits(place)
            if commits.deletions == deletions:
                commits.floor = max(commits.floor, floor)

    # -------------------------------------------------------------------------------- checking

    def bounds(self, place: OffsetPlace) -> tuple[int, int]:
        """To be remembered when a fetch is taken: its floor, and what is gone for good by then."""
        commits = self._commits(place)
        return commits.floor, commits.gone

    def check(self, place: OffsetPlace, bounds: tuple[int, int], offset: int, when: str) -> None:
        """Whether a fetch that was taken at these bounds may say this offset."""
        commits = self._commits(place)
        floor, gone = bounds
        floor = min(floor, commits.floor) if commits.floor < 0 else floor
        if offset == NO_OFFSET:
            check(
                floor < 0,
                "S20",
                lambda: (
                    f"{when}: {place} has no offset, but {commits.offsets[floor:]} were "
                    "acknowledged"
                ),
            )
            return
        self._check_origin(place, gone, offset, when)
        allowed = [
            value
            for index, value in enumerate(commits.offsets)
            if index >= floor and index not in commits.refused
        ]
        check(
            offset in allowed,
            "S15" if floor >= 0 and offset in commits.offsets[:floor] else "S11",
            lambda: f"{when}: {place} is {offset}, which none of {allowed} allows",
        )

    def _check_origin(self, place: OffsetPlace, gone: int, offset: int, when: str) -> None:
        commits, transaction = self._commits(place), self._transactions.get(offset)
        is_decided = transaction is None or transaction.decision
        check(
            bool(is_decided),
            "S16",
            lambda: f"{when}: {place} shows {offset} of {transaction}, which is not committed",
        )
        is_gone = bool(gone) and offset not in commits.offsets[gone:]
        check(not is_gone, "S19", lambda: f"{when}: {place} shows {offset}, which was deleted")

    def must_be_unstable(self, place: OffsetPlace, partition: LogPartition) -> bool:
        """S16: an offset was acknowledged there and no marker for it can have arrived."""
        commits = self._places.get(place)
        if commits is None or place[1] in self._once_deleted:
            return False
        return any(
            transaction is not None
            and place in transaction.acknowledged
            and transaction.acknowledged[place][1] == commits.deletions
            and partition not in transaction.is_marked
            for transaction in commits.transactions[-20:]
        )

    def may_be_unstable(self, place: OffsetPlace, partition: LogPartition) -> bool:
        """S16: there is a transaction that was not ended there."""
        commits = self._places.get(place)
        return commits is not None and any(
            transaction is not None and not transaction.is_over(place[0], partition)
            for transaction in commits.transactions
        )
