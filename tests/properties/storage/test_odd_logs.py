"""Whatever is legal in a log: imported, trimmed and exported it comes to the same."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from cli.log.verify import read_reports
from cli.progress import Progress
from model.ids import LogPartition
from storage.codec.batches import read_batch_header
from storage.log.fold import PartitionFold
from storage.log.trim import compute_trim_limit
from storage.log_store import LatestEntry, LogStore
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import RocksLogReader, open_store_reader
from storage.segments.folder import open_segments
from storage.segments.segment_writer import create_segments
from storage.transfer.export_log import export_segments
from storage.transfer.import_log import ImportOptions, import_segments
from tests.properties.storage.odd_logs import START_MS, make_odd_log
from tests.support.storage.log_cleaner import clean
from tests.support.trimming import trim_once

P0 = LogPartition(0)
State = tuple[dict[bytes, LatestEntry], dict[tuple[int, bytes], LatestEntry]]


def fold(batches: Iterable[bytes]) -> PartitionFold:
    folded = PartitionFold()
    for batch in batches:
        folded.apply(batch)
    return folded


def state_of(folded: PartitionFold) -> State:
    pending = folded.pending.items()
    return folded.latest, {
        (producer_id, key): entry for producer_id, found in pending for key, entry in found.items()
    }


def read_state(store: LogStore | RocksLogReader) -> State:
    return {entry.key: entry for entry in store.latest(P0)}, {
        (producer_id, entry.key): entry for producer_id, entry in store.pending(P0)
    }


def do_import(segments: Path, store: Path, *, aborts_open: bool = False) -> None:
    options = ImportOptions(1, aborts_open)
    import_segments(open_segments(segments), store, options, lambda _: None)


def check_export(store: Path, target: Path, folded: PartitionFold, *, whole: bool) -> None:
    reader = open_store_reader(store)
    export_segments(reader, target, is_whole=whole, with_side=True)
    end = reader.next_offset(P0)
    reader.close()
    again = fold(batch.data for batch in open_segments(target).read(P0))
    assert state_of(again) == state_of(folded)
    assert again.next_offset == end
    do_import(target, target / "store")
    reader = open_store_reader(target / "store")
    assert read_state(reader) == state_of(folded)
    reader.close()


@pytest.mark.parametrize("seed", range(16))
def test_an_odd_log_there_and_back(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    log = make_odd_log(rng)
    if rng.random() < 0.4:
        ends = [read_batch_header(batch).last_offset + 1 for batch in log]
        log = clean(log, rng.choice(ends), START_MS, 1 << 40)
    with create_segments(tmp_path / "log", segment_bytes=rng.choice((200, 2_000, 1 << 20))) as made:
        made.write_partition(P0, log)
    store_path = tmp_path / "data" / "store"
    aborts_open = rng.random() < 0.3
    do_import(tmp_path / "log", store_path, aborts_open=aborts_open)
    store = open_store(store_path, partitions=1)
    wanted = fold(store.read_log(P0)) if aborts_open else fold(log)
    assert read_state(store) == state_of(wanted)
    assert not (aborts_open and wanted.pending)
    for _ in range(rng.randrange(8)):
        trim_once(store, P0, compute_trim_limit(store, P0), rng.choice((1, 300, 3_000)))
        assert state_of(fold(store.read_log(P0))) == read_state(store) == state_of(wanted)
    store.close()
    _, violations = read_reports(store_path, Progress(is_quiet=True), allow_torn_tail=False)
    # What the log says of groups is drawn, and its markers are of any producer and epoch.
    assert {violation.rule for violation in violations} <= {"S19", "markers"}, violations
    check_export(store_path, tmp_path / "whole", wanted, whole=True)
    check_export(store_path, tmp_path / "present", wanted, whole=False)
