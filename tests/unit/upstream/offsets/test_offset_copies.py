"""Offsets that come with a group and go with it, where they are kept here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from model.commands.offsets import OffsetFetch
from model.commands.places import GiveGroupUp
from model.errors import CoordinatorLoadInProgress, ErrorCode, GroupError
from tests.support.upstream.offset_cluster import Fate
from tests.support.upstream.offsets_rig import (
    FOO,
    PARTITIONS,
    Asked,
    G,
    OffsetsRig,
    make_commit,
    make_txn_commit,
)
from tests.support.virtual.server import CALLER
from upstream.offsets import offset_copies
from upstream.offsets.offset_copies import OffsetCopies
from upstream.offsets.own_offsets import OwnOffsets

HELD = {("foo", n): (n + 1, 3, "m") for n in range(PARTITIONS)}


class Copies:
    """The group is not here yet."""

    def __init__(self, rig: OffsetsRig) -> None:
        self.rig = rig
        self.own = OwnOffsets(rig.runtime)
        self.copies = OffsetCopies(
            rig.runtime, rig.cluster, rig.takeovers, self.own, now_ms=lambda: rig.now_ms
        )

    async def fetch_own(self) -> dict[int, tuple[int, str]]:
        answer = await self.rig.runtime.call(OffsetFetch(CALLER, G, None))
        rows = [row for topic in answer.topics for row in topic.partitions]  # type: ignore[union-attr]
        return {row.partition: (row.offset, row.metadata) for row in rows}  # type: ignore[union-attr]


@pytest.fixture
async def both(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Copies]:
    monkeypatch.setattr(offset_copies, "PART", 5)
    rig = OffsetsRig()
    await rig.start()
    await rig.runtime.call(GiveGroupUp(CALLER, G))
    yield Copies(rig)
    await rig.stop()


async def test_offsets_come_with_the_group(both: Copies) -> None:
    both.rig.fake.offsets[G] = {**HELD, ("old", 1): (7, -1, "")}
    assert await both.copies.copy_in(G) == PARTITIONS
    assert await both.fetch_own() == {n: (n + 1, "m") for n in range(PARTITIONS)}
    assert await both.copies.copy_in(G) == PARTITIONS


async def test_a_transaction_that_is_not_over_is_waited_for(both: Copies) -> None:
    both.rig.fake.offsets[G] = dict(HELD)
    both.rig.fake.unstable.add((FOO, 3))
    with pytest.raises(CoordinatorLoadInProgress):
        await both.copies.copy_in(G)


async def test_offsets_go_with_the_group(both: Copies) -> None:
    both.rig.fake.offsets[G] = dict(HELD)
    await both.copies.copy_in(G)
    both.rig.fake.offsets[G] = {}
    both.rig.fake.topics_gone.add("gone")
    assert await both.copies.copy_out(G) == PARTITIONS
    assert both.rig.fake.offsets[G] == HELD
    assert len(both.rig.fake.commits()) == 3
    commit = make_commit("a", (0, 9))
    closed = Asked(lambda reply: both.own.commit(commit, reply))
    assert await closed.said() == "NOT_COORDINATOR"
    both.own.reopen(G)
    assert await Asked(lambda reply: both.own.commit(commit, reply)).said() != "NOT_COORDINATOR"


async def test_what_cannot_be_copied_is_said(both: Copies) -> None:
    both.rig.fake.offsets[G] = {("foo", 0): (1, -1, "x" * 20)}
    await both.copies.copy_in(G)
    with pytest.raises(GroupError) as refused:
        await both.copies.copy_out(G)
    assert refused.value.code is ErrorCode.OFFSET_METADATA_TOO_LARGE


async def test_a_copy_without_an_answer_is_made_again(both: Copies) -> None:
    both.rig.fake.offsets[G] = dict(HELD)
    await both.copies.copy_in(G)
    both.rig.fake.fates += [Fate.ANSWERED, Fate.LOST_LATE]
    with pytest.raises(CoordinatorLoadInProgress):
        await both.copies.copy_out(G)
    assert await both.copies.copy_out(G) == PARTITIONS


async def test_transactions_are_refused_where_offsets_are_here(both: Copies) -> None:
    commit = make_txn_commit("a", (0, 5))
    asked = Asked(lambda reply: both.own.commit_transaction(commit, reply))
    assert await asked.said() == "UNSUPPORTED_VERSION"
