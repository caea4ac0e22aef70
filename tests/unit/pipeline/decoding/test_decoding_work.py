"""Commits are decoded by columns: Python's work grows with batches, not with records."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.pipeline.commit_segment import PARTITIONS, write_segments
from pipeline.decoding.bounds import ALL
from pipeline.decoding.byte_source import BytesOfFile
from pipeline.schema import RECORDS
from pipeline.source.logs.segment_log import SLICES_OF_A_FILE
from pipeline.source.options import Decode, LogOptions
from pipeline.source.slice_reading import open_log, read_slices
from tests.cost.counting import count

CALLS_OF_RECORD = 0.2
"""Most calls, of Python and C; decoding a record by itself takes a hundred."""


def count_decoding(folder: Path, records: int) -> int:
    log = open_log(str(write_segments(folder, 1, records=records)))
    ((part,),) = log.plan([(partition, ALL) for partition in log.partitions], None)
    options = LogOptions(str(folder), decode=Decode.RECORDS)

    def decode() -> None:
        rows = sum(batch.num_rows for batch in read_slices([part], options, RECORDS))
        assert rows == records

    return count(decode).calls


def test_a_segment_of_commits_is_decoded_by_columns(tmp_path: Path) -> None:
    small, large = (
        count_decoding(tmp_path / str(commits), commits * PARTITIONS) for commits in (200, 800)
    )
    assert large / (800 * PARTITIONS) < CALLS_OF_RECORD
    assert large <= 4 * small


@pytest.mark.parametrize("wanted", [10, 40, 160])
def test_a_file_in_many_parts_is_read_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    """Each part is scanned from the beginning: 100 parts read a file 50 times."""
    folder = write_segments(tmp_path, 1, records=200 * PARTITIONS)
    file_bytes = sum(file.stat().st_size for file in folder.rglob("*.log"))
    log = open_log(str(folder))
    tasks = log.plan([(partition, ALL) for partition in log.partitions], wanted)
    amounts: list[int] = []
    read = BytesOfFile.read

    def count(source: BytesOfFile, position: int, size: int) -> bytes:
        data = read(source, position, size)
        amounts.append(len(data))
        return data

    monkeypatch.setattr(BytesOfFile, "read", count)
    options = LogOptions(str(folder), decode=Decode.RECORDS)
    parts = [part for task in tasks for part in task]
    rows = sum(batch.num_rows for batch in read_slices(parts, options, RECORDS))
    assert rows == 200 * PARTITIONS
    assert len(tasks) == SLICES_OF_A_FILE
    assert sum(amounts) < (SLICES_OF_A_FILE / 2 + 2) * file_bytes
