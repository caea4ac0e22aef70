"""An undo sets exactly what was before its change, whatever was in the same write, and since."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from coordinator.runtime.as_of.history_answers import PastGroup
from coordinator.runtime.offsets import offset_deletion
from coordinator.service.admin.resets.past_offsets import compute_undone, find_committed
from model.commands.command import Command
from model.commands.groups import DeleteGroup
from model.commands.offset_changes import ListOffsetChanges
from model.commands.offsets import DeleteOffsets, OffsetFetch, TopicOffsets
from model.commands.resets import ResetOffsets
from model.ids import GroupId, LogOffset, LogPartition, TopicName
from model.log.commit_records import make_offset_columns
from model.past.as_of import AsOfOffset
from model.past.offset_changes import NO_OFFSET, OffsetChange
from model.responses.offset_changes import ListOffsetChangesResponse
from model.responses.offsets import OffsetFetchResponse
from storage.log.group_history import GroupQuestion, fold_group
from storage.log.trim import NO_HISTORY_START
from tests.support.virtual.server import CALLER, Pending, VirtualServer, error_name

G = GroupId("g")
T = TopicName("t")
P = LogPartition(0)
PARTITIONS = 6
SLICE = 2
"""So few offsets are deleted at a time: most deletions take several writes."""
Offsets = dict[int, int]


class Step(NamedTuple):
    """One command; ``settles`` says that it is written before the next one comes."""

    what: str
    offsets: Offsets
    settles: bool


STEPS = st.builds(
    Step,
    st.sampled_from(["commit", "commit", "reset", "delete offsets", "delete group", "undo"]),
    st.dictionaries(st.integers(0, PARTITIONS - 1), st.integers(0, 5), min_size=1),
    st.booleans(),
)


class Undos:
    """A server, what the group's offsets are, and what they were before and after each change."""

    def __init__(self) -> None:
        self.server = VirtualServer({"t": PARTITIONS}, partitions=1)
        self.now: Offsets = {}
        self.changes: list[tuple[Offsets, Offsets]] = []
        self.asked: list[Pending] = []

    def take(self, step: Step) -> None:
        if step.what == "undo":
            self.undo_last()
            return
        before = dict(self.now)
        command = self.make_command(step)
        self.asked.append(self.server.submit(command))
        # What takes several turns sees what comes between.
        if step.settles or step.what == "delete group" or len(step.offsets) > SLICE:
            self.settle()
        if step.what != "commit" and (self.now != before or step.what == "reset"):
            self.changes.append((before, dict(self.now)))

    def make_command(self, step: Step) -> Command:
        match step.what:
            case "commit":
                self.now |= step.offsets
                return self.server.commit_command("g", "", None, "t", step.offsets)
            case "reset":
                self.now |= step.offsets
                return make_reset(step.offsets, None)
            case "delete offsets":
                self.now = {n: at for n, at in self.now.items() if n not in step.offsets}
                return DeleteOffsets(CALLER, G, ((T, tuple(step.offsets)),))
            case _:
                self.now = {}
                return DeleteGroup(CALLER, G)

    def settle(self) -> None:
        self.server.settle()
        for each in self.asked:
            assert error_name(each.answer) in ("NONE", "GROUP_ID_NOT_FOUND")
        self.asked.clear()

    def list(self) -> list[OffsetChange]:
        answer = self.server.ask(ListOffsetChanges(CALLER, G, None, 1_000))
        assert isinstance(answer, ListOffsetChangesResponse)
        return list(reversed(answer.changes))

    def read_past(self, offset: int) -> Offsets:
        if offset < 0:
            return {}
        store, runtime = self.server.store, self.server.runtime
        end = store.next_offset(P)
        question = GroupQuestion(P, G, AsOfOffset(LogOffset(offset)), end, 1 << 60)
        history = fold_group(store, question, NO_HISTORY_START)
        past = PastGroup(store, history, self.server.settings, runtime.image)
        answer = past.answer(OffsetFetch(CALLER, G, None))
        assert isinstance(answer, OffsetFetchResponse)
        return {partition: at for (_, partition), at in find_committed(answer.topics).items()}

    def compute_wanted(self, change: OffsetChange) -> Offsets:
        before = {(T, n): at for n, at in self.read_past(change.first - 1).items()}
        after = {(T, n): at for n, at in self.read_past(change.last).items()}
        return {n: at for (_, n), at in compute_undone(change, before, after).wanted.items()}

    def undo_last(self) -> None:
        self.settle()
        changes = self.list()
        wanted = self.compute_wanted(changes[-1]) if changes else {}
        if not wanted:
            return
        before = dict(self.now)
        answer = self.server.ask(make_reset(wanted, changes[-1].first))
        assert error_name(answer) == "NONE"
        self.now = {n: at for n, at in (self.now | wanted).items() if at != NO_OFFSET}
        self.changes.append((before, dict(self.now)))

    def check(self) -> None:
        """The offsets are what they should be, and each change undoes exactly itself."""
        self.settle()
        end = self.server.store.next_offset(P)
        assert self.read_past(end - 1) == self.now
        changes = self.list()
        assert len(changes) == len(self.changes)
        for change, (before, after) in zip(changes, self.changes, strict=True):
            different = {n for n in before | after if before.get(n) != after.get(n)}
            assert self.compute_wanted(change) == {n: before.get(n, NO_OFFSET) for n in different}


def make_reset(offsets: Offsets, undoes: LogOffset | None) -> ResetOffsets:
    rows = make_offset_columns([(n, at, -1, "") for n, at in sorted(offsets.items())])
    topics = (TopicOffsets(T, None, rows),)
    return ResetOffsets(CALLER, G, topics, creates=True, undoes=undoes)


def with_small_slices(check: Callable[[], None]) -> None:
    known, offset_deletion.SLICE = offset_deletion.SLICE, SLICE
    try:
        check()
    finally:
        offset_deletion.SLICE = known


@given(st.lists(STEPS, max_size=12))
def test_each_change_undoes_exactly_itself(steps: list[Step]) -> None:
    def run() -> None:
        undos = Undos()
        for step in steps:
            undos.take(step)
        undos.check()

    with_small_slices(run)


@given(st.lists(STEPS, max_size=8))
def test_an_undo_and_its_undo_leave_what_was_there(steps: list[Step]) -> None:
    def run() -> None:
        undos = Undos()
        for step in steps:
            undos.take(step)
        undos.settle()
        before = dict(undos.now)
        undos.undo_last()
        undos.undo_last()
        assert undos.now == before
        undos.check()

    with_small_slices(run)
