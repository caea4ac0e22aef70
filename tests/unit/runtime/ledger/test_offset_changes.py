"""Which changes of offsets are in the ledger, and where in the log each is."""

from __future__ import annotations

import pytest

from coordinator.runtime.ledger import change_reads
from coordinator.runtime.ledger.noted_changes import NotedChange, WrittenChange
from coordinator.runtime.ledger.offset_changes import GROWS_WITHIN_MS, OffsetChangeLedger
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.offsets import expiry_walks, offset_deletion
from model.commands.groups import DeleteGroup
from model.commands.offset_changes import ListOffsetChanges
from model.commands.offsets import DeleteOffsets, TopicOffsets
from model.commands.resets import ResetOffsets
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import InvalidRequest
from model.ids import GroupId, LogOffset, LogPartition, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import OffsetCommitKey
from model.past.offset_changes import NO_OFFSET, OffsetChange, OffsetChangeKind
from model.responses.offset_changes import ListOffsetChangesResponse
from storage.codec.batches import decode_batch
from storage.codec.record_codec import decode_key
from storage.log_store import StoreStalled
from storage.offset_changes_codec import decode_offset_change
from tests.support.virtual.server import CALLER, VirtualServer, error_name

G = GroupId("g")
FOO = TopicName("foo")
PARTITION = LogPartition(0)
SLICE = 4


def make_server(settings: CoordinatorSettings | None = None) -> VirtualServer:
    return VirtualServer({"foo": 100}, partitions=1, settings=settings)


@pytest.fixture
def server() -> VirtualServer:
    server = make_server()
    commit(server, {0: 10, 1: 11})
    return server


def commit(server: VirtualServer, offsets: dict[int, int], group: str = "g") -> None:
    assert error_name(server.ask(server.commit_command(group, "", None, "foo", offsets))) == "NONE"


def make_reset(offsets: dict[int, int], undoes: int | None = None) -> ResetOffsets:
    rows = make_offset_columns([(number, at, -1, "") for number, at in offsets.items()])
    topics = (TopicOffsets(FOO, None, rows),)
    change = None if undoes is None else LogOffset(undoes)
    return ResetOffsets(CALLER, G, topics, creates=True, undoes=change)


def reset(server: VirtualServer, offsets: dict[int, int], undoes: int | None = None) -> None:
    assert error_name(server.ask(make_reset(offsets, undoes))) == "NONE"


def list_changes(
    server: VirtualServer, before: int | None = None, limit: int = 9
) -> ListOffsetChangesResponse:
    answer = server.ask(ListOffsetChanges(CALLER, G, before, limit))
    assert isinstance(answer, ListOffsetChangesResponse), repr(answer)
    return answer


def summarize(server: VirtualServer) -> list[tuple[str, int]]:
    return [(each.kind.value, each.offsets) for each in list_changes(server).changes]


def read_offsets(server: VirtualServer, *partitions: int) -> list[int]:
    return [server.fetch("g", "foo", number) for number in partitions]


def check_ranges(server: VirtualServer) -> None:
    """Each change of one write is in batches of its own."""
    batches = [decode_batch(data) for data in server.store.read_log(PARTITION)]
    edges = {batch.base_offset for batch in batches} | {server.store.next_offset(PARTITION)}
    for change in list_changes(server, limit=99).changes:
        assert {change.first, change.last + 1} <= edges, change


def test_each_kind_has_an_entry_and_commits_have_none(server: VirtualServer) -> None:
    reset(server, {0: 5, 2: 6})
    server.ask(DeleteOffsets(CALLER, G, ((FOO, (0, 50)),)))
    reset(server, {0: 10}, undoes=7)
    server.advance(10)
    server.ask(DeleteGroup(CALLER, G))
    assert summarize(server) == [
        ("group_deleted", 3),
        ("undo", 1),
        ("offsets_deleted", 1),
        ("reset", 2),
    ]
    last, undo, *_ = list_changes(server).changes
    assert (undo.undoes, undo.principal) == (7, CALLER.principal)
    assert last.at_ms == undo.at_ms + 10
    check_ranges(server)
    server.restart()
    assert list_changes(server).changes[:2] == (last, undo)


def test_what_changes_no_offset_has_none(server: VirtualServer) -> None:
    server.ask(DeleteOffsets(CALLER, G, ((FOO, (7,)),)))
    server.join("c", "m", ["foo"])
    server.leave("c", "m")
    server.ask(DeleteGroup(CALLER, GroupId("c")))
    assert summarize(server) == []
    server.ask(DeleteGroup(CALLER, G, validate_only=True))
    assert summarize(server) == []


def test_a_change_is_apart_from_commits_in_the_same_write(server: VirtualServer) -> None:
    first = server.store.next_offset(PARTITION)
    asked = [
        server.submit(server.commit_command("g", "", None, "foo", {0: 20})),
        server.submit(make_reset({0: 5})),
        server.submit(server.commit_command("g", "", None, "foo", {1: 21})),
    ]
    server.settle()
    assert [error_name(each.answer) for each in asked] == ["NONE"] * 3
    (change,) = list_changes(server).changes
    assert (change.first, change.last) == (first + 1, first + 1)
    check_ranges(server)


def test_an_undo_removes_what_was_not_there(server: VirtualServer) -> None:
    reset(server, {2: 6})
    reset(server, {0: 9, 2: NO_OFFSET}, undoes=3)
    assert read_offsets(server, 0, 1, 2) == [9, 11, -1]
    refused = server.ask(make_reset({0: NO_OFFSET}))
    assert isinstance(refused, InvalidRequest)


def test_a_group_that_an_undo_leaves_without_offsets_is_gone() -> None:
    server = make_server()
    reset(server, {0: 5})
    reset(server, {0: NO_OFFSET}, undoes=0)
    assert error_name(server.ask(DeleteGroup(CALLER, G))) == "GROUP_ID_NOT_FOUND"
    server.restart()
    assert error_name(server.ask(DeleteGroup(CALLER, G))) == "GROUP_ID_NOT_FOUND"
    assert summarize(server) == [("undo", 1), ("reset", 1)]


def test_a_reset_of_a_live_group_has_an_entry_when_the_offsets_are_set(
    server: VirtualServer,
) -> None:
    server.join("g", "a", ["foo"])
    reset(server, {0: 5, 1: NO_OFFSET}, undoes=4)
    assert summarize(server) == []
    assert read_offsets(server, 0, 1) == [10, 11]
    server.leave("g", "a")
    assert summarize(server) == [("undo", 2)]
    assert list_changes(server).changes[0].undoes == 4
    assert read_offsets(server, 0, 1) == [5, -1]
    check_ranges(server)


def test_what_takes_several_writes_is_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_deletion, "SLICE", SLICE)
    server = make_server(CoordinatorSettings(flush_records_max=SLICE))
    commit(server, dict.fromkeys(range(5 * SLICE), 7))
    server.ask(DeleteOffsets(CALLER, G, ((FOO, tuple(range(2 * SLICE))),)))
    commit(server, {0: 9}, "other")
    server.ask(DeleteGroup(CALLER, G))
    assert summarize(server) == [("group_deleted", 3 * SLICE), ("offsets_deleted", 2 * SLICE)]
    deleted, _ = list_changes(server).changes
    keys = [
        decode_key(record.key)
        for data in server.store.read_log(PARTITION, deleted.first)
        for record in decode_batch(data).records
        if record.key is not None and record.offset <= deleted.last
    ]
    removed = {key.partition for key in keys if isinstance(key, OffsetCommitKey)}
    assert removed == set(range(2 * SLICE, 5 * SLICE))
    assert deleted.only_removes


def test_expiry_of_a_group_is_one_change_of_each_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry_walks, "SLICE", SLICE)
    settings = CoordinatorSettings(
        offsets_retention_minutes=1, offsets_retention_check_interval_ms=5_000
    )
    server = make_server(settings)
    commit(server, dict.fromkeys(range(3 * SLICE), 7))
    server.advance(40_000)
    commit(server, {90: 1})
    server.advance(25_000)
    assert summarize(server) == [("expired", 3 * SLICE)]
    server.advance(40_000)
    assert summarize(server) == [("expired", 1), ("expired", 3 * SLICE)]
    assert list_changes(server).changes[0].principal == ""


def test_a_write_that_stalls_makes_the_entry_once(server: VirtualServer) -> None:
    write, stalls = server.store.write, [StoreStalled(), StoreStalled()]

    def stall(*arguments: object) -> None:
        if stalls:
            raise stalls.pop()
        write(*arguments)  # type: ignore[arg-type]

    server.store.write = stall  # type: ignore[assignment,method-assign]
    asked = server.submit(make_reset({0: 5}))
    server.advance(10_000)
    assert error_name(asked.answer) == "NONE"
    assert not stalls
    assert summarize(server) == [("reset", 1)]
    check_ranges(server)


def test_pages(server: VirtualServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_reads, "SLICE", 2)
    for offset in range(5):
        reset(server, {0: offset})
    every = list_changes(server).changes
    assert len(every) == 5
    found: list[OffsetChange] = []
    before, has_more = None, True
    while has_more:
        page = list_changes(server, before, 2)
        found += page.changes
        before, has_more = page.changes[-1].first, page.has_more
    assert tuple(found) == every
    assert {each.kind for each in every} == {OffsetChangeKind.RESET}
    nobody = server.ask(ListOffsetChanges(CALLER, GroupId("h"), None, 9))
    assert nobody == ListOffsetChangesResponse(())


def test_what_is_given_up_does_not_go_on_much_later() -> None:
    ledger = OffsetChangeLedger(Stats())

    def write(first: int, at_ms: int, *, goes_on: bool) -> OffsetChange:
        noted = NotedChange(G, OffsetChangeKind.GROUP_DELETED, "User:a", 3, None, goes_on)
        changed = WrittenChange(noted, LogOffset(first), LogOffset(first + 2))
        ((key, packed),) = ledger.compute_changes([changed], at_ms)
        ledger.note_written()
        assert packed is not None
        return decode_offset_change(key, packed)

    first = write(10, 1_000, goes_on=True)
    second = write(20, 1_000 + GROWS_WITHIN_MS, goes_on=True)
    assert (second.first, second.last, second.offsets, second.at_ms) == (10, 22, 6, first.at_ms)
    third = write(30, 1_001 + 2 * GROWS_WITHIN_MS, goes_on=False)
    assert (third.first, third.offsets) == (30, 3)
    assert write(40, 1_002 + 2 * GROWS_WITHIN_MS, goes_on=False).first == 40
