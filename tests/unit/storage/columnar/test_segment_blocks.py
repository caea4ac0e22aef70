from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from model.ids import LogPartition
from storage.codec.batch_encoding import encode_batch
from storage.columnar import segment_blocks
from storage.columnar.segment_blocks import read_segment_blocks
from storage.segments.errors import SegmentError
from storage.segments.folder import compute_segment_name, open_segments
from storage.segments.segment_reader import SegmentFile, read_segments
from tests.support.storage.commit_log import MIXED, make_commit_log
from tests.support.storage.golden import GOLDEN


def write_segments(folder: Path, batches: Sequence[bytes], per_file: int) -> list[SegmentFile]:
    folder.mkdir(exist_ok=True)
    files = []
    for start in range(0, len(batches), per_file):
        part = batches[start : start + per_file]
        base_offset = int.from_bytes(part[0][:8], "big")
        path = folder / compute_segment_name(base_offset)
        path.write_bytes(b"".join(part))
        files.append(SegmentFile(path, LogPartition(0), base_offset))
    return files


def read(files: Sequence[SegmentFile]) -> tuple[bytes, str]:
    """The blocks of a partition, and the error that ends them, if any."""
    parts: list[bytes] = []
    try:
        for block in read_segment_blocks(files):
            parts.append(block.data[: int(block.sizes.sum())])
    except SegmentError as error:
        return b"".join(parts), f"{type(error).__name__}: {error}"
    return b"".join(parts), ""


def read_plainly(files: Sequence[SegmentFile]) -> tuple[bytes, str]:
    parts: list[bytes] = []
    try:
        for batch in read_segments(files):
            parts.append(batch.data)
    except SegmentError as error:
        return b"".join(parts), f"{type(error).__name__}: {error}"
    return b"".join(parts), ""


@pytest.fixture(params=[200, 5000, 1 << 20])
def _small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_blocks, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("_small_blocks")
def test_several_files(tmp_path: Path) -> None:
    batches = [*make_commit_log(MIXED, 800), encode_batch(10_000, [(b"k", b"v" * 20_000)], 1)]
    files = write_segments(tmp_path, batches, 7)
    assert read(files) == (b"".join(batches), "")


def test_a_real_log() -> None:
    folder = open_segments(GOLDEN / "segments")
    for files in folder.segments.values():
        assert read(files) == (b"".join(file.path.read_bytes() for file in files), "")


def test_an_empty_file_and_preallocated_zeros(tmp_path: Path) -> None:
    batches = list(make_commit_log(MIXED, 300))
    files = write_segments(tmp_path, batches, 5)
    with files[-1].path.open("ab") as file:
        file.write(bytes(100_000))
    assert read(files) == (b"".join(batches), "")
    empty = tmp_path / compute_segment_name(99_999)
    empty.touch()
    files.append(SegmentFile(empty, LogPartition(0), 99_999))
    assert read(files) == read_plainly(files)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("seed", range(25))
def test_damage_is_told_as_the_plain_reader_tells_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    batches = list(make_commit_log(MIXED, 400))
    kind = chance.choice(("bit", "cut", "swap", "again", "zeros"))
    if kind == "swap":
        first = chance.randrange(len(batches) - 1)
        batches[first : first + 2] = batches[first + 1], batches[first]
    elif kind == "again":
        batches.insert(chance.randrange(1, len(batches)), batches[0])
    files = write_segments(tmp_path, batches, 6)
    path = chance.choice(files).path
    content = bytearray(path.read_bytes())
    if kind == "bit":
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del content[chance.randrange(len(content)) :]
    elif kind == "zeros":
        at = chance.randrange(len(content))
        content[at:] = bytes(len(content) - at)
    path.write_bytes(content)
    found, error = read(files)
    plain, plain_error = read_plainly(files)
    assert error == plain_error
    assert plain.startswith(found) if error else found == plain
