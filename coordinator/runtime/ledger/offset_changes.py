"""Notes changes of offsets that are no commits, in the same write as their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.runtime.ledger.noted_changes import NotedChange, WrittenChange
from coordinator.runtime.ledger.rebalance_ledger import RebalanceLedger
from coordinator.runtime.loop.stats import Stats
from model.commands.groups import DeleteGroup
from model.commands.offsets import DeleteOffsets, ExpireOffsets
from model.commands.resets import FinishReset, ResetOffsets
from model.ids import GroupId
from model.log.records import OffsetCommitKey
from model.past.offset_changes import OffsetChange, OffsetChangeKind
from model.responses.response import Done
from storage.log_store import Change
from storage.offset_changes_codec import encode_change_key, encode_offset_change

CHANGE_OFFSETS: Final = frozenset(
    {ResetOffsets, FinishReset, DeleteGroup, DeleteOffsets, ExpireOffsets}
)
"""The commands that may change offsets, and are no commits."""
GROWING_MAX: Final = 1_000
"""The changes of so many groups may go on with their next write."""
GROWS_WITHIN_MS: Final = 60_000
"""What has not gone on for so long was given up."""


def compute_offset_change(shard: Shard, command: object, outcome: Outcome) -> NotedChange | None:
    """The change that the records of the outcome are; ``None`` if they are about no offsets."""
    offsets = sum(isinstance(key, OffsetCommitKey) for key, _ in outcome.records)
    if not offsets:
        return None
    kind, undoes, goes_on = OffsetChangeKind.RESET, None, False
    match command:
        case ResetOffsets(group_id=group_id, caller=caller):
            principal, undoes = caller.principal, command.undoes
        case FinishReset(group_id):
            reset = shard.resets[group_id].value
            principal, undoes = reset.principal, reset.undoes
        case DeleteGroup(group_id=group_id, caller=caller):
            kind, principal = OffsetChangeKind.GROUP_DELETED, caller.principal
            goes_on = not outcome.last_offsets
        case DeleteOffsets(group_id=group_id, caller=caller):
            kind, principal = OffsetChangeKind.OFFSETS_DELETED, caller.principal
            # Only the last part has the answer.
            goes_on = isinstance(outcome.response, Done)
        case ExpireOffsets(group_id=group_id):
            kind, principal, goes_on = OffsetChangeKind.EXPIRED, "", command.goes_on
        case _:
            return None
    if undoes is not None:
        kind = OffsetChangeKind.UNDO
    return NotedChange(group_id, kind, principal, offsets, undoes, goes_on)


@dataclass(frozen=True, slots=True)
class _Written:
    """The last change of a group: its entry, when that was last written, whether it goes on."""

    entry: OffsetChange
    at_ms: int
    goes_on: bool

    def is_part_of(self, noted: NotedChange, wall_ms: int) -> bool:
        """Whether what is noted is the next part of this change."""
        is_recent = abs(wall_ms - self.at_ms) <= GROWS_WITHIN_MS
        return self.goes_on and self.entry.kind is noted.kind and is_recent


class OffsetChangeLedger:
    """Makes the entries. What takes several writes has one entry, which grows.

    A restart forgets what goes on: what is left then begins an entry of its own.
    """

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._growing: dict[GroupId, _Written] = {}
        self._unwritten: dict[GroupId, _Written] = {}
        self._count = 0

    def compute_changes(self, changed: Sequence[WrittenChange], wall_ms: int) -> Iterator[Change]:
        """The entries of the changes in a write, which may fail and be tried again."""
        self._unwritten, self._count = {}, len(changed)
        for each in changed:
            group_id = each.noted.group_id
            entry = self._make_entry(each, wall_ms)
            self._unwritten[group_id] = _Written(entry, wall_ms, each.noted.goes_on)
            yield encode_change_key(group_id, entry.first), encode_offset_change(entry)

    def _make_entry(self, changed: WrittenChange, wall_ms: int) -> OffsetChange:
        noted, first, last = changed
        known = self._unwritten.get(noted.group_id) or self._growing.get(noted.group_id)
        if known is not None and known.is_part_of(noted, wall_ms):
            offsets = known.entry.offsets + noted.offsets
            return replace(known.entry, last=last, offsets=offsets)
        return OffsetChange(
            noted.kind, wall_ms, noted.principal, first, last, noted.offsets, noted.undoes
        )

    def note_written(self) -> None:
        """What ``compute_changes`` made is written."""
        if not self._unwritten:
            return
        self._stats.ledger_entries += self._count
        for group_id, written in self._unwritten.items():
            self._growing.pop(group_id, None)
            if written.goes_on:
                self._growing[group_id] = written
        while len(self._growing) > GROWING_MAX:
            del self._growing[next(iter(self._growing))]
        self._unwritten = {}


class LedgerEntries:
    """What the ledger has of a write: rebalances, and changes of offsets."""

    def __init__(self, rebalances: RebalanceLedger, changes: OffsetChangeLedger) -> None:
        self._rebalances = rebalances
        self._changes = changes

    def compute(self, changed: Sequence[WrittenChange], wall_ms: int) -> Sequence[Change]:
        """The entries of a write, which has these changes of offsets."""
        rebalances = self._rebalances.compute_changes()
        if not changed:
            return rebalances
        return [*rebalances, *self._changes.compute_changes(changed, wall_ms)]

    def note_written(self) -> None:
        """What ``compute`` returned is written."""
        self._rebalances.note_written()
        self._changes.note_written()
