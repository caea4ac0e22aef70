from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from model.access.scram import ScramCredential, ScramMechanism
from model.client_assignors import (
    ClientAssignorsKey,
    ClientAssignorsValue,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.group_freeze import GroupFreeze
from model.ids import (
    GroupId,
    LogOffset,
    LogPartition,
    MemberId,
    ProducerId,
    TopicId,
    TopicName,
    compute_log_partition,
)
from model.log.side_records import (
    GroupFreezeKey,
    GroupPlaceKey,
    ImportGraceKey,
    ImportGraceValue,
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerIdBlockKey,
    ProducerIdBlockValue,
    ProducerStateKey,
    ProducerStateValue,
    ScramCredentialKey,
    SideRecord,
    TopicDeletionKey,
    TopicDeletionValue,
    TopicSideKey,
    TopicSideValue,
)
from model.places import GroupPlace, Place
from storage.codec.batch_encoding import encode_batch, encode_marker
from storage.columnar import segment_blocks
from storage.log.fold import PartitionFold
from storage.log_store import LogStore, StoreLocked
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from storage.segments.errors import SegmentError
from storage.segments.folder import compute_segment_name, open_segments
from storage.side_codec import decode_side, encode_side
from storage.transfer import rehash
from storage.transfer.import_log import ImportCount, ImportOptions, import_segments
from storage.transfer.import_refused import ImportRefused
from storage.transfer.import_side import Pair, SideImport, compute_side
from tests.support.storage.appends import append, offset_key, offset_value
from tests.support.storage.golden import GOLDEN, segments

SEGMENTS = GOLDEN / "segments"
TOPIC_ID = TopicId(bytes(range(16)))


def run(source: Path, store: Path, options: ImportOptions | None = None) -> ImportCount:
    count, _ = import_segments(
        open_segments(source), store, options or ImportOptions(), lambda _: None
    )
    return count


def write_log(folder: Path, logs: dict[int, Sequence[bytes]]) -> Path:
    for partition, batches in logs.items():
        path = folder / f"__consumer_offsets-{partition}"
        path.mkdir(parents=True)
        (path / compute_segment_name(0)).write_bytes(b"".join(batches))
    return folder


def commits(group: str, base: int = 0, count: int = 3) -> bytes:
    return encode_batch(base, [(offset_key(group, p), offset_value(p)) for p in range(count)], 5)


def pending_commits(group: str, base: int, producer_id: int) -> bytes:
    return encode_batch(
        base,
        [(offset_key(group), offset_value(77))],
        6,
        producer_id=producer_id,
        producer_epoch=2,
        is_transactional=True,
    )


def marker(base: int, producer_id: int, *, committed: bool) -> bytes:
    return encode_marker(
        base,
        7,
        producer_id=producer_id,
        producer_epoch=2,
        committed=committed,
        coordinator_epoch=0,
    )


def check_folds(store: LogStore) -> None:
    """``latest`` and ``pending`` are what the log of every partition folds to."""
    for number in range(store.partitions):
        partition = LogPartition(number)
        folded = PartitionFold()
        for batch in store.read_log(partition):
            folded.apply(batch)
        assert {entry.key: entry for entry in store.latest(partition)} == folded.latest
        pending: dict[int, dict[bytes, object]] = {}
        for producer_id, entry in store.pending(partition):
            pending.setdefault(producer_id, {})[entry.key] = entry
        assert pending == folded.pending
        assert store.next_offset(partition) >= folded.next_offset


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.mark.parametrize("block", [300, 4 << 20])
def test_a_real_log_is_taken_over(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_blocks, "BLOCK_BYTES", block)
    count = run(SEGMENTS, tmp_path / "store")
    assert (count.partitions, count.batches, count.records) == (50, 2511, 6144)
    assert (count.is_rehashed, len(count.open_producers)) == (False, 2)
    store = open_store(tmp_path / "store", partitions=9)
    assert store.partitions == 50
    for partition, segment in segments().items():
        assert b"".join(store.read_log(LogPartition(partition))) == segment
    check_folds(store)
    store.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


def test_a_store_goes_on_after_an_import(tmp_path: Path) -> None:
    run(SEGMENTS, tmp_path / "store")
    store = open_store(tmp_path / "store", partitions=50)
    group = "another"
    partition = compute_log_partition(GroupId(group), 50)
    append(store, {partition: [(offset_key(group), offset_value(1))]})
    store.sync()
    store.close()
    store = open_store(tmp_path / "store", partitions=50)
    entry = store.get_latest(partition, offset_key(group))
    assert entry is not None
    check_folds(store)
    store.close()


def test_several_segments_with_gaps(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "log", {0: [commits("a", 4), commits("a", 10)]})
    later = folder / "__consumer_offsets-0" / compute_segment_name(500)
    later.write_bytes(commits("a", 600, 2) + commits("b", 1000))
    count = run(folder, tmp_path / "store")
    assert (count.partitions, count.records) == (1, 11)
    store = open_store(tmp_path / "store", partitions=1)
    assert store.next_offset(LogPartition(0)) == 1003
    check_folds(store)
    store.close()


def test_side_records(tmp_path: Path) -> None:
    old = open_store(tmp_path / "store", partitions=7)
    kept = SideRecord(TopicSideKey(TopicName("kept")), TopicSideValue(TopicId(bytes(16)), 3))
    block = SideRecord(ProducerIdBlockKey(), ProducerIdBlockValue(3))
    old.write([], [encode_side(kept), encode_side(block)])
    cluster_id = old.cluster_id
    old.close()
    topic = TopicSideValue(TOPIC_ID, 12)
    side = SideImport({TopicName("orders"): topic}, imported_at_ms=99)
    count = run(SEGMENTS, tmp_path / "store", ImportOptions(side=side))
    store = open_store(tmp_path / "store", partitions=7)
    # A store without groups takes over the partition count of the log and keeps its identity.
    assert (store.partitions, store.cluster_id) == (50, cluster_id)
    assert {decode_side(key, value) for key, value in store.side()} == {
        kept,
        SideRecord(TopicSideKey(TopicName("orders")), topic),
        SideRecord(ProducerIdBlockKey(), ProducerIdBlockValue(count.highest_producer_id + 1)),
        SideRecord(ImportGraceKey(), ImportGraceValue(99)),
    }
    store.close()


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (("orders", TopicSideValue(TopicId(b"x" * 16), 12)), "has id"),
        (("orders", TopicSideValue(TOPIC_ID, 1)), "cannot shrink"),
        (("others", TopicSideValue(TOPIC_ID, 12)), "same id as topic orders"),
    ],
)
def test_topics_that_contradict_the_store(
    topic: tuple[str, TopicSideValue], message: str, tmp_path: Path
) -> None:
    old = open_store(tmp_path / "store", partitions=50)
    there = SideRecord(TopicSideKey(TopicName("orders")), TopicSideValue(TOPIC_ID, 12))
    old.write([], [encode_side(there)])
    old.close()
    before = read_files(tmp_path / "store")
    side = SideImport({TopicName(topic[0]): topic[1]})
    with pytest.raises(ImportRefused, match=message):
        run(SEGMENTS, tmp_path / "store", ImportOptions(side=side))
    assert read_files(tmp_path / "store") == before


def test_a_user_of_the_store_gets_no_other_password_by_an_import() -> None:
    own, other, foreign = (
        ScramCredential(salt, 4096, bytes(32), bytes(32)) for salt in (b"own", b"other", b"foreign")
    )
    of_256, of_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
    old = [(ScramCredentialKey("alice", of_512), own)]
    exported = [
        (ScramCredentialKey("alice", of_256), other),
        (ScramCredentialKey("alice", of_512), other),
        (ScramCredentialKey("bob", of_256), foreign),
    ]

    def encode(records: list[tuple[ScramCredentialKey, ScramCredential]]) -> list[Pair]:
        return [
            (key, value or b"") for key, value in (encode_side(SideRecord(*r)) for r in records)
        ]

    merged = compute_side(encode(old), SideImport(records=encode(exported)), -1)
    assert {decode_side(*pair).key: decode_side(*pair).value for pair in merged} == dict(
        [*old, exported[2]]
    )


# ------------------------------------------------------------------------------------- refused


def test_partitions_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="partition 49"):
        run(SEGMENTS, tmp_path / "store", ImportOptions(partitions=49))
    with pytest.raises(ImportRefused, match=r"mismatch.*use --partitions 50 if"):
        run(SEGMENTS, tmp_path / "store", ImportOptions(partitions=60))
    assert not list(tmp_path.iterdir())


def test_a_log_of_several_topics_fits_nowhere(tmp_path: Path) -> None:
    groups = {compute_log_partition(GroupId(f"g{n}"), 50): f"g{n}" for n in range(300)}
    logs = {p: [commits(groups[(p + 1) % 50])] for p in range(50)}
    with pytest.raises(ImportRefused, match="belong to several topics, or were renamed"):
        run(write_log(tmp_path / "log", logs), tmp_path / "store")


def test_a_torn_tail_is_refused_or_cut(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "log", {0: [commits("a"), commits("a", 3)[:-5]]})
    with pytest.raises(SegmentError, match="byte"):
        run(folder, tmp_path / "store")
    assert not (tmp_path / "store").exists()
    count = run(folder, tmp_path / "store", ImportOptions(cuts_torn_tail=True))
    assert count.records == 3
    assert count.notes[-1].startswith("left out: ")


def test_damage_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    run(write_log(tmp_path / "first", {0: [commits("a")]}), tmp_path / "store")
    before = read_files(tmp_path / "store")
    damaged = bytearray(commits("b") + commits("b", 3))
    damaged[80] ^= 1
    folder = write_log(tmp_path / "log", {0: [bytes(damaged)]})
    with pytest.raises(SegmentError, match="CRC"):
        run(folder, tmp_path / "store")
    assert read_files(tmp_path / "store") == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["first", "log", "store"]


def test_a_store_in_use_is_left_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=50)
    with pytest.raises(StoreLocked):
        run(SEGMENTS, tmp_path / "store")
    store.close()


# ----------------------------------------------------------------------------------- rehashing


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of 7 partitions with a group."""
    path = tmp_path / "store"
    opened = open_store(path, partitions=7)
    group = "there already"
    partition = compute_log_partition(GroupId(group), 7)
    append(opened, {partition: [(offset_key(group), offset_value(1))]})
    opened.close()
    return path


def check_store(path: Path, check: Callable[[RocksLogStore], None] = lambda _: None) -> None:
    opened = open_store(path, partitions=1)
    try:
        assert opened.partitions == 7
        check_folds(opened)
        check(opened)
    finally:
        opened.close()


@pytest.mark.parametrize("write", [500, rehash.WRITE_BYTES])
def test_groups_go_where_they_hash_to(
    write: int, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehash, "WRITE_BYTES", write)
    with pytest.raises(ImportRefused, match="open transactions"):
        run(SEGMENTS, store)
    count = run(SEGMENTS, store, ImportOptions(aborts_open=True))
    assert (count.is_rehashed, len(count.aborted_producers)) == (True, 2)
    expected: dict[bytes, tuple[int, bytes]] = {}
    for batches in segments().values():
        folded = PartitionFold()
        for batch in split(batches):
            folded.apply(batch)
        expected |= {key: (e.timestamp, e.value) for key, e in folded.latest.items()}

    def check(opened: RocksLogStore) -> None:
        found = {}
        for number in range(7):
            partition = LogPartition(number)
            assert not list(opened.pending(partition))
            for entry in opened.latest(partition):
                group = import_log_group(entry.key)
                assert compute_log_partition(group, 7) == partition
                if group != "there already":
                    found[entry.key] = (entry.timestamp, entry.value)
        assert found == expected

    check_store(store, check)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["store"]


def import_log_group(key: bytes) -> GroupId:
    return GroupId(key[4 : 4 + int.from_bytes(key[2:4], "big")].decode())


def split(segment: bytes) -> list[bytes]:
    block = segment_blocks.split_beginning(segment)
    ends = (block.starts + block.sizes).tolist()
    return [segment[a:b] for a, b in zip(block.starts.tolist(), ends, strict=True)]


def test_a_transaction_gets_its_marker_in_each_new_partition(store: Path, tmp_path: Path) -> None:
    groups = [f"t{n}" for n in range(5)]
    parts = {compute_log_partition(GroupId(group), 7) for group in groups}
    assert len(parts) > 1
    mixed = encode_batch(
        0,
        [(offset_key(group), offset_value(5)) for group in groups],
        6,
        producer_id=9,
        producer_epoch=2,
        is_transactional=True,
    )
    folder = write_log(tmp_path / "log", {0: [mixed, marker(5, 9, committed=True)]})
    run(folder, store, ImportOptions(partitions=1))

    def check(opened: RocksLogStore) -> None:
        for group in groups:
            partition = compute_log_partition(GroupId(group), 7)
            assert opened.get_latest(partition, offset_key(group)) is not None

    check_store(store, check)


def test_a_group_in_both_is_refused_unless_it_is_gone_in_the_log(
    store: Path, tmp_path: Path
) -> None:
    log = [commits("there already", 0, 1)]
    folder = write_log(tmp_path / "alive", {0: log})
    with pytest.raises(ImportRefused, match="in the store and in the imported log: there already"):
        run(folder, store, ImportOptions(partitions=1))
    log.append(encode_batch(1, [(offset_key("there already"), None)], 9))
    log.append(commits("other", 2))
    count = run(write_log(tmp_path / "gone", {0: log}), store, ImportOptions(partitions=1))
    assert count.records == 5

    def check(opened: RocksLogStore) -> None:
        group = GroupId("there already")
        key = offset_key(group)
        assert opened.get_latest(compute_log_partition(group, 7), key) is not None

    check_store(store, check)


def test_what_a_log_does_not_come_to_is_in_nobodys_way(store: Path, tmp_path: Path) -> None:
    """Regression: aborted offsets, and type-0 keys deleted by type 1, counted as groups."""
    key = offset_key("there already")
    old_value = b"\0\1" + bytes(8) + b"\0\0" + bytes(8) + b"\xff" * 8

    def begin(base_offset: int) -> bytes:
        return encode_batch(
            base_offset,
            [(key, offset_value(1))],
            5,
            producer_id=3,
            producer_epoch=0,
            is_transactional=True,
        )

    def run_log(name: str, *batches: bytes) -> None:
        folder = write_log(tmp_path / name, {0: list(batches)})
        run(folder, store, ImportOptions(partitions=1, aborts_open=True))

    run_log("aborted", begin(0), marker(1, 3, committed=False))
    run_log("open", begin(0))
    run_log("taken", begin(0), encode_batch(1, [(key, None)], 9), marker(2, 3, committed=True))
    old = encode_batch(0, [(b"\0\0" + key[2:], old_value)], 5)
    run_log("old", old, encode_batch(1, [(key, None)], 6))
    with pytest.raises(ImportRefused, match="in the imported log: there already"):
        run_log("committed", begin(0), marker(1, 3, committed=True))
    check_store(store)


def test_what_is_kept_beside_a_log_goes_where_its_groups_go(store: Path, tmp_path: Path) -> None:
    """A producer's state must be in every partition that holds an imported group."""
    groups = [GroupId(f"t{n}") for n in range(5)]
    parts = {compute_log_partition(group, 7) for group in groups}
    assert 1 < len(parts) < 7
    batch = encode_batch(0, [(offset_key(group), offset_value(5)) for group in groups], 6)
    m, epochs = MemberId("m"), ProducerStateValue(3, 2, 1_700_000_000_000)
    installed = InstalledMetadataValue(1, "a", 1, b"")
    beside = [
        SideRecord(ProducerStateKey(LogPartition(0), ProducerId(9)), epochs),
        *(SideRecord(InstalledMetadataKey(LogPartition(0), g, m), installed) for g in groups),
        *(
            SideRecord(
                ProducerGroupKey(LogPartition(0), ProducerId(9), g), ProducerGroupValue(4, 3)
            )
            for g in groups
        ),
        *(
            SideRecord(ClientAssignorsKey(LogPartition(0), group, m), ClientAssignorsValue(()))
            for group in groups
        ),
        *(
            SideRecord(GroupPlaceKey(LogPartition(0), group), GroupPlace(Place.MUSTER, 1))
            for group in groups
        ),
        *(
            SideRecord(GroupFreezeKey(LogPartition(0), group), GroupFreeze(1, "User:a"))
            for group in groups
        ),
    ]
    pairs = [(key, value) for key, value in map(encode_side, beside) if value is not None]
    folder = write_log(tmp_path / "log", {0: [batch]})
    run(folder, store, ImportOptions(partitions=1, side=SideImport(records=pairs)))

    def check(opened: RocksLogStore) -> None:
        found = [decode_side(key, value).key for key, value in opened.side()]
        producers = {key.partition for key in found if isinstance(key, ProducerStateKey)}
        assert producers == parts
        for kind in (
            InstalledMetadataKey,
            ClientAssignorsKey,
            ProducerGroupKey,
            GroupPlaceKey,
            GroupFreezeKey,
        ):
            members = {(key.partition, key.group_id) for key in found if isinstance(key, kind)}
            assert members == {(compute_log_partition(group, 7), group) for group in groups}

    check_store(store, check)


@pytest.mark.parametrize("epochs", [(5, 3), (3, 5)], ids=["first higher", "last higher"])
def test_who_is_fenced_in_any_partition_is_fenced_in_all(
    store: Path, tmp_path: Path, epochs: tuple[int, int]
) -> None:
    """Regression: with rehashed groups, only the producer state of the last partition was kept."""
    group = GroupId("t0")
    batch = encode_batch(0, [(offset_key(group), offset_value(5))], 6)
    beside = [
        record
        for number, epoch in enumerate(epochs)
        for record in (
            SideRecord(
                ProducerStateKey(LogPartition(number), ProducerId(9)),
                ProducerStateValue(epoch, 7 - epoch, 1_700_000_000_000),
            ),
            SideRecord(
                ProducerGroupKey(LogPartition(number), ProducerId(9), group),
                ProducerGroupValue(epoch, 6 - epoch),
            ),
        )
    ]
    pairs = [(key, value) for key, value in map(encode_side, beside) if value is not None]
    folder = write_log(tmp_path / "log", {0: [batch]})
    run(folder, store, ImportOptions(partitions=2, side=SideImport(records=pairs)))

    def check(opened: RocksLogStore) -> None:
        found = [decode_side(key, value).value for key, value in opened.side()]
        states = [value for value in found if isinstance(value, ProducerStateValue)]
        assert states
        assert {(state.producer_epoch, state.coordinator_epoch) for state in states} == {(5, 4)}
        in_groups = [value for value in found if isinstance(value, ProducerGroupValue)]
        assert in_groups == [ProducerGroupValue(5, 3)]

    check_store(store, check)


def test_a_deletion_beside_a_log_that_is_hashed_anew_does_not_say_where_that_log_ended(
    store: Path, tmp_path: Path
) -> None:
    key = TopicDeletionKey(TOPIC_ID)
    deletion = TopicDeletionValue(TopicName("foo"), 1, (LogOffset(6),))
    pair = encode_side(SideRecord(key, deletion))
    assert pair[1] is not None
    folder = write_log(tmp_path / "log", {0: [commits("t", 0)]})
    side = SideImport(records=[(pair[0], pair[1])])
    run(folder, store, ImportOptions(partitions=1, side=side))

    def check(opened: RocksLogStore) -> None:
        found = [decode_side(*pair) for pair in opened.side()]
        assert [r.value for r in found if r.key == key] == [TopicDeletionValue(deletion.topic, 1)]

    check_store(store, check)


def test_open_transactions_may_be_aborted_on_loading_too(tmp_path: Path) -> None:
    log = [pending_commits("a", 0, 4), commits("b", 1), pending_commits("a", 4, 6)]
    log.append(marker(5, 6, committed=True))
    folder = write_log(tmp_path / "log", {0: log})
    count = run(folder, tmp_path / "store", ImportOptions(partitions=1, aborts_open=True))
    assert (count.aborted_producers, count.open_producers) == ({4}, set())
    opened = open_store(tmp_path / "store", partitions=1)
    assert not list(opened.pending(LogPartition(0)))
    assert opened.next_offset(LogPartition(0)) == 7
    check_folds(opened)
    opened.close()
