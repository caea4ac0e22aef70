from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import decode_batch
from storage.codec.errors import CodecError
from storage.log.fold import PartitionFold
from storage.log_store import LatestEntry, compute_latest_key
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from storage.segments.errors import TargetInUse
from storage.segments.folder import open_segments
from storage.segments.segment_writer import create_segments
from storage.transfer import export_log
from storage.transfer.export_log import (
    SIDE_FILE,
    ExportCount,
    compact_log,
    decode_side_file,
    encode_side_file,
    export_segments,
)
from storage.transfer.import_log import ImportOptions, import_segments
from tests.support.storage.appends import append, offset_key, offset_value
from tests.support.storage.drawn_logs import LOGS, Write, encode, lay_out
from tests.support.storage.golden import GOLDEN, segments

SEGMENTS = GOLDEN / "segments"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imported") / "store"
    import_segments(open_segments(SEGMENTS), path, ImportOptions(), lambda _: None)
    return path


def export(store: Path, target: Path, *, whole: bool, side: bool = False) -> ExportCount:
    reader = open_store_reader(store)
    try:
        return export_segments(reader, target, is_whole=whole, with_side=side)
    finally:
        reader.close()


def read_files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def fold_folder(folder: Path) -> dict[int, PartitionFold]:
    found = {}
    source = open_segments(folder)
    for partition in source.partitions:
        folded = PartitionFold()
        for batch in source.read(partition):
            folded.apply(batch.data)
        found[int(partition)] = folded
    return found


def test_the_whole_history_is_what_was_imported(store: Path, tmp_path: Path) -> None:
    count = export(store, tmp_path / "log", whole=True)
    assert read_files(tmp_path / "log") == read_files(SEGMENTS)
    assert (count.partitions, count.batches) == (len(segments()), 2511)


@pytest.mark.parametrize("block", [300, 4 << 20])
def test_the_present_folds_to_the_same(
    block: int, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_log, "BLOCK_BYTES", block)
    count = export(store, tmp_path / "log", whole=False)
    compacted, whole = fold_folder(tmp_path / "log"), fold_folder(SEGMENTS)
    assert compacted.keys() == whole.keys()
    for partition, folded in whole.items():
        assert compacted[partition].latest == folded.latest
        assert compacted[partition].pending == folded.pending
        assert compacted[partition].next_offset == folded.next_offset
    assert count.open_producers == {2, 5}
    assert count.bytes < sum(map(len, segments().values())) / 3
    # Every remaining record is live: nothing is left for a cleaner to remove.
    kept = sum(
        len(decode_batch(batch.data).records)
        for partition in open_segments(tmp_path / "log").partitions
        for batch in open_segments(tmp_path / "log").read(partition)
    )
    assert kept == sum(
        len(folded.latest) + sum(map(len, folded.pending.values())) for folded in whole.values()
    )


def test_an_imported_export_is_the_same_store(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "log", whole=False)
    count, _ = import_segments(
        open_segments(tmp_path / "log"), tmp_path / "again", ImportOptions(), lambda _: None
    )
    assert count.open_producers == {2, 5}
    export(tmp_path / "again", tmp_path / "second", whole=False)
    assert read_files(tmp_path / "second") == read_files(tmp_path / "log")


class FakeReader(SimpleNamespace):
    """A reader for ``compact_log``, backed by a fold."""

    def read_log(self, _: LogPartition) -> Iterator[bytes]:
        return iter(self.log)

    def pending(self, _: LogPartition) -> Iterator[tuple[int, LatestEntry]]:
        for producer_id, entries in self.folded.pending.items():
            yield from ((producer_id, entry) for entry in entries.values())

    def get_many_latest(self, _: LogPartition, keys: list[bytes]) -> list[LatestEntry | None]:
        return [self.folded.latest.get(compute_latest_key(key)) for key in keys]


@settings(max_examples=200)
@given(LOGS, st.integers(0, 2), st.integers(1, 4))
def test_any_log_compacts_to_what_it_folds_to(
    writes: list[Write], gap: int, per_batch: int
) -> None:
    log = list(encode(lay_out(writes, gap), per_batch))
    folded = PartitionFold()
    for batch in log:
        folded.apply(batch)
    compacted = PartitionFold()
    reader = FakeReader(log=log, folded=folded)
    for batch in compact_log(reader, LogPartition(0)):  # type: ignore[arg-type]
        compacted.apply(batch)
    assert compacted.latest == folded.latest
    assert compacted.pending == folded.pending
    assert compacted.next_offset == folded.next_offset


def test_side_records_go_beside_the_segments(tmp_path: Path) -> None:
    opened = open_store(tmp_path / "store", partitions=3)
    append(opened, {1: [(offset_key("g"), offset_value(1))]})
    opened.write([], [(b"\x01topic", b"value"), (b"\x02", b"")])
    cluster_id = opened.cluster_id
    opened.close()
    assert export(tmp_path / "store", tmp_path / "plain", whole=True).side_records == 2
    assert list(read_files(tmp_path / "plain")) == ["__consumer_offsets-1/00000000000000000000.log"]
    export(tmp_path / "store", tmp_path / "both", whole=True, side=True)
    content = read_files(tmp_path / "both")[SIDE_FILE]
    assert decode_side_file(content) == (cluster_id, [(b"\x01topic", b"value"), (b"\x02", b"")])


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"version":1,"cluster_id":"","records":3}']
)
def test_a_side_file_that_is_none(content: bytes) -> None:
    with pytest.raises(CodecError, match=SIDE_FILE):
        decode_side_file(content)


def test_a_newer_side_file() -> None:
    newer = encode_side_file("c", []).replace(b'"version": 1', b'"version": 2')
    with pytest.raises(CodecError, match="newer"):
        decode_side_file(newer)


def test_high_offsets_get_a_segment_of_their_own_name(tmp_path: Path) -> None:
    base = 1 << 40
    log = tmp_path / "log" / "__consumer_offsets-0"
    log.mkdir(parents=True)
    batch = encode_batch(base, [(offset_key("g"), offset_value(1))], 5)
    (log / f"{base:020}.log").write_bytes(batch)
    import_segments(
        open_segments(log.parent), tmp_path / "store", ImportOptions(partitions=1), lambda _: None
    )
    export(tmp_path / "store", tmp_path / "out", whole=True)
    assert read_files(tmp_path / "out") == read_files(log.parent)


def test_a_target_that_is_there_is_left_alone(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetInUse):
        export(store, tmp_path, whole=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_store_is_exported_beside_its_server(tmp_path: Path) -> None:
    opened = open_store(tmp_path / "store", partitions=1)
    append(opened, {0: [(offset_key("g"), offset_value(1))]})
    opened.sync()
    export(tmp_path / "store", tmp_path / "log", whole=True)
    log = b"".join(opened.read_log(LogPartition(0), LogOffset(0)))
    assert list(read_files(tmp_path / "log").values()) == [log]
    opened.close()


@pytest.mark.parametrize("whole", [True, False])
def test_leader_epochs_of_another_cluster_stay_there(whole: bool, tmp_path: Path) -> None:
    """In a new cluster the leader is at epoch 0, but followers would ask it for epoch 57."""
    log = encode_batch(0, [(offset_key("g"), offset_value(1))], 5, leader_epoch=57)
    with create_segments(tmp_path / "kafka") as writer:
        writer.write_partition(LogPartition(0), [log])
    options = ImportOptions(partitions=1)
    import_segments(open_segments(tmp_path / "kafka"), tmp_path / "store", options, lambda _: None)
    export(tmp_path / "store", tmp_path / "log", whole=whole)
    (found,) = open_segments(tmp_path / "log").read(LogPartition(0))
    batch = decode_batch(found.data)
    assert batch.leader_epoch == 0
    assert batch.records == decode_batch(log).records
