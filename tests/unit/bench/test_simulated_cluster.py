"""The simulated cluster depends only on its seed, and its log violates no rule."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from bench.pipeline.simulated_cluster import LOG_PARTITIONS, Cluster, write_cluster
from bench.pipeline.simulated_groups import CLASSIC, CONSUMER, SIMPLE, make_topics, simulate_group
from pipeline.audit.audit_rules import make_audit_observers
from pipeline.decoding.blocks import decode_blocks
from pipeline.schema import RECORDS
from pipeline.tables.histories.rows import Rows
from tests.pipeline.logged import follow, golden_table, read_all_events

SMALL = Cluster(groups=80, days=3, records=4_000, seed=3)
DAY_MS = 86_400_000


def test_a_seed_gives_the_same_bytes_and_another_gives_others(tmp_path: Path) -> None:
    first = write_cluster(tmp_path / "first", SMALL, processes=1)
    again = write_cluster(tmp_path / "again", SMALL, processes=2)
    assert first == again
    assert read_all(tmp_path / "first") == read_all(tmp_path / "again")
    write_cluster(tmp_path / "other", Cluster(80, 3, 4_000, 4), processes=1)
    assert read_all(tmp_path / "first") != read_all(tmp_path / "other")


def test_every_record_is_read_and_no_rule_is_broken(tmp_path: Path) -> None:
    written = write_cluster(tmp_path, SMALL, processes=1)
    table = golden_table(tmp_path / "log")
    assert table.num_rows == written.records
    assert table.column("problem").null_count == written.records
    assert len(table.column("group_id").unique()) == SMALL.groups
    rows = Rows()
    week_ms = 7 * DAY_MS
    follow(read_all_events(table), lambda *_: make_audit_observers(rows, week_ms))
    found = rows.take()
    assert set(found) == {"partition_ownership"}
    # S1: nobody has a partition before the one before has let go.
    ends: dict[tuple[str, int], int | None] = {}
    for row in sorted(found["partition_ownership"], key=lambda row: row["valid_from"]):
        place = row["group_id"], row["partition"]
        end = ends.get(place, 0)
        assert end is not None
        assert end <= row["valid_from"]
        ends[place] = row["valid_to"]


def test_a_partition_is_in_the_order_of_time(tmp_path: Path) -> None:
    write_cluster(tmp_path, SMALL, processes=1)
    folders = list((tmp_path / "log").iterdir())
    assert len(folders) == LOG_PARTITIONS
    for folder in folders:
        (file,) = folder.iterdir()
        rows = pa.Table.from_batches([decode_blocks(file.read_bytes())], RECORDS)
        offsets, times = rows.column("offset").to_pylist(), rows.column("timestamp").to_pylist()
        assert offsets == list(range(len(offsets)))
        assert times == sorted(times)


def test_there_are_groups_of_every_kind_and_some_are_empty_in_the_end() -> None:
    (topic, *_) = make_topics(100, 1)
    lives = [simulate_group(number, topic, 1, 0, 30 * DAY_MS) for number in range(200)]
    assert {life.kind for life in lives} == {CONSUMER, CLASSIC, SIMPLE}
    assert any(life.end_ms < 30 * DAY_MS for life in lives)
    assert all(write.time_ms < 30 * DAY_MS for life in lives for write in life.writes)


def read_all(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
