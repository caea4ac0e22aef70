"""What the page of a group shows, section by section, from the answers to its questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from console.charts.spark import compute_spark
from console.live.fragments import Row
from console.views.group_view import (
    GroupFacts,
    MemberRow,
    compute_facts,
    compute_member,
    compute_waits,
)
from console.views.lag_history import LagHistory, describe_trend
from console.views.partitions_view import (
    Owner,
    OwnerFinder,
    PartitionRow,
    Place,
    Rows,
    compute_partition,
    compute_slowest_ms,
    cut_page,
    find_lags,
    sort_places,
)
from console.views.timeline_view import compute_timeline
from coordinator.runtime.loop.slices import Steps
from muster.v1 import admin_pb2, explain_pb2, reset_pb2, types_pb2

_SLICE: Final = 100
"""So many rows are made in one event-loop iteration, each in some 15 µs."""

_Partition: TypeAlias = tuple[Owner, types_pb2.CommittedOffset | None, str, PartitionRow]
"""What a row was made of, and the row."""
Sections: TypeAlias = list[tuple[str, Sequence[Row]]]


class Timeline(NamedTuple):
    """Rebalances and changes of offsets, each the last one first.

    ``older_ms``: there may be others before this time; 0 if there are none.
    """

    rebalances: Sequence[explain_pb2.Rebalance] = ()
    changes: Sequence[reset_pb2.OffsetChange] = ()
    older_ms: int = 0


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered. ``at_ms`` is the wall time of the description, ``page`` counts from 1."""

    group: admin_pb2.Group
    committed: Rows
    timeline: Timeline
    at_ms: int
    page: int = 1


@dataclass(slots=True)
class RowMaker:
    """Makes the rows of one group. Members that were answered as before are not looked at again."""

    history: LagHistory | None = None
    finder: OwnerFinder = field(default_factory=OwnerFinder)
    _partitions: dict[Place, _Partition] = field(default_factory=dict)
    _members: dict[str, tuple[bytes, int | None, MemberRow]] = field(default_factory=dict)
    """By id what a row was made of (see ``OwnerFinder``), and the row."""

    def make(self, answers: Answers) -> Steps[Sections]:
        """The sections of the page, a slice at a time."""
        group = answers.group
        members = yield from self._make_members(group, answers.page)
        yield
        owners = yield from self.finder.find(group.members)
        places = yield from sort_places(chain(owners, answers.committed))
        partitions = yield from self._make_partitions(answers, owners, places)
        waits, more = compute_waits(group, answers.at_ms)
        wait_rows: list[Row] = [(f"{each.member_id}\0{each.owner_id}", each) for each in waits]
        yield
        facts = compute_facts(group)
        yield
        facts = self._add_lag(facts, answers.committed, len(places))
        timeline = compute_timeline(answers.timeline.rebalances, answers.timeline.changes)
        return [
            ("facts", [("facts", facts)]),
            ("waits", wait_rows),
            ("more-waits", [("more-waits", more)] if more else []),
            ("members", members),
            ("partitions", partitions),
            ("timeline", [(row.key, row) for row in timeline]),
            ("counts", [("counts", (len(group.members), len(places), answers.page))]),
        ]

    def _make_members(self, group: admin_pb2.Group, page: int) -> Steps[list[Row]]:
        # What a member's row shows of its group.
        is_classic = group.group_type == admin_pb2.GROUP_TYPE_CLASSIC
        shared = group.group_epoch if is_classic else None
        before, after = self._members, {}
        rows: list[Row] = []
        for number, member in enumerate(cut_page(group.members, page)):
            known, encoded = before.get(member.member_id), member.SerializeToString()
            if known is None or known[1] != shared or known[0] != encoded:
                known = (encoded, shared, compute_member(group, member))
            after[member.member_id] = known
            rows.append((member.member_id, known[2]))
            if number % _SLICE == _SLICE - 1:
                yield
        self._members = after
        return rows

    def _make_partitions(
        self, answers: Answers, owners: dict[Place, Owner], places: Sequence[Place]
    ) -> Steps[list[Row]]:
        committed, nobody = answers.committed, Owner()
        before, after = self._partitions, {}
        rows: list[Row] = []
        for number, place in enumerate(cut_page(places, answers.page)):
            owner, row = owners.get(place, nobody), committed.get(place)
            trend = "" if self.history is None else self.history.describe_trend(place)
            known = before.get(place)
            if known is None or known[0] != owner or known[1] is not row or known[2] != trend:
                known = (owner, row, trend, compute_partition(place, owner, row, trend))
            after[place] = known
            rows.append((f"{place[0]}\0{place[1]}", known[3]))
            if number % _SLICE == _SLICE - 1:
                yield
        self._partitions = after
        return rows

    def _add_lag(self, facts: GroupFacts, committed: Rows, places: int) -> GroupFacts:
        lags = find_lags(committed)
        if not lags:
            return facts
        slowest_ms = compute_slowest_ms(list(committed.values()))
        note = ""
        if len(lags) < places:
            note = f"of {len(lags):,} of {places:,} partitions: the others are not known"
        samples = () if self.history is None else tuple(self.history.total)
        trend, spark = describe_trend(samples), compute_spark(samples)
        return replace(
            facts,
            lag=f"{sum(lags.values()):,}",
            lag_seconds="" if slowest_ms is None else f"{slowest_ms / 1_000:.1f} s",
            lag_note=", ".join(part for part in (trend, note) if part),
            lag_spark=spark,
            lag_hint="" if spark is None else f"lag while looked at, {spark.low} to {spark.high}",
        )
