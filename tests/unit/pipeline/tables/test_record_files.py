"""The files of ``records``, written by the tasks that decode them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.decoding.blocks import decode_blocks
from pipeline.tables import record_files
from pipeline.tables.record_files import RecordFiles, split_days
from pipeline.tables.record_table import TABLE_NAMES
from pipeline.tables.writing import NO_DAY
from tests.pipeline.logged import golden_table
from tests.support.pipeline.blocks import START_MS, make_commits, make_log

DAY_MS = 24 * 60 * 60 * 1000


def write(folder: Path, *batches: pa.RecordBatch) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for day, file in RecordFiles(folder, "000000-7", "snappy").write(batches):
        found.setdefault(day, []).append(file)
    return found


def read(files: list[Path]) -> pa.Table:
    ours = {new: old for old, new in TABLE_NAMES.items()}
    tables = [pq.read_table(file) for file in files]
    whole = pa.concat_tables(tables)
    return whole.rename_columns([ours.get(name, name) for name in whole.column_names])


def test_files_have_the_rows_that_were_decoded(tmp_path: Path) -> None:
    table = golden_table()
    files = write(tmp_path, *table.to_batches())
    assert read([file for found in files.values() for file in found]).equals(table)


def test_each_day_has_its_folder_and_rows_without_a_time_too(tmp_path: Path) -> None:
    times = [START_MS, START_MS + DAY_MS, START_MS, 1 << 62, -1]
    data = b"".join(make_commits(number * 2, 2, time_ms=time) for number, time in enumerate(times))
    rows = decode_blocks(data)
    found = {day: part.column("offset").to_pylist() for day, part in split_days(rows)}
    assert found == {
        "2026-11-18": [0, 1, 4, 5],
        "2026-11-19": [2, 3],
        NO_DAY: [6, 7],
        "1969-12-31": [8, 9],
    }
    files = write(tmp_path, rows)
    assert {day: read(part).column("offset").to_pylist() for day, part in files.items()} == found


@pytest.mark.parametrize(("held", "count"), [(1, 6), (1 << 20, 1)])
def test_few_files_are_open_however_times_jump(
    held: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days that recur get another file, with another name."""
    monkeypatch.setattr(record_files, "HELD_BYTES", held)
    monkeypatch.setattr(record_files, "MAX_OPEN_FILES", 2)
    data = make_log(18, step_ms=DAY_MS)
    rows = [decode_blocks(batch) for batch in [*data[:3] * 6]]
    files = write(tmp_path, *rows)
    assert [len(found) for found in files.values()] == [count] * 3
    offsets = [read(found).column("offset").to_pylist() for found in files.values()]
    assert offsets == [[0, 1, 2] * 6, [3, 4, 5] * 6, [6, 7, 8] * 6]
    assert len({file.name for found in files.values() for file in found}) == 3 * count


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, decode_blocks(b"")) == {}
    assert not list(tmp_path.iterdir())
