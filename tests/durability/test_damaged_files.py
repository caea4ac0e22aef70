"""Files of the store that are damaged, cut or gone: refused by name, never read short.

Whatever is done to a file, the store is refused, at the latest when what is spoilt is read, or
all that was acknowledged is there.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.durability.stores import (
    Content,
    check_refused_or_whole,
    copy,
    cut,
    find,
    flip_bit,
    make_store,
)

FLIPS = 20
TABLE, BLOB, MANIFEST, CURRENT, WAL = "*.sst", "*.blob", "MANIFEST-*", "CURRENT", "*.log"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Content]:
    """A store, and what is in it."""
    folder = tmp_path_factory.mktemp("whole") / "store"
    return folder, make_store(folder)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (TABLE, r"\.sst|MANIFEST-"),
        (BLOB, "log of log partition [01]"),
        (MANIFEST, "MANIFEST-"),
        (CURRENT, "CURRENT|MANIFEST-"),
    ],
)
def test_a_flipped_bit_is_noticed(
    whole: tuple[Path, Content], scratch: Path, pattern: str, names: str
) -> None:
    folder, expected = whole
    chance = random.Random(pattern)
    refusals = []
    for _ in range(FLIPS):
        spoilt = copy(folder, scratch / "store")
        path = chance.choice(find(spoilt, pattern))
        flip_bit(path, chance.randrange(path.stat().st_size), chance.randrange(8))
        refusal = check_refused_or_whole(spoilt, expected)
        if refusal is not None:
            refusals.append(refusal.message)
    assert len(refusals) > FLIPS * 3 // 4, "most of a file means something"
    assert [line for line in refusals if not re.search(names, line)] == []


def test_a_manifest_cut_anywhere_loses_nothing(whole: tuple[Path, Content], scratch: Path) -> None:
    folder, expected = whole
    (manifest,) = find(folder, MANIFEST)
    for size in range(0, manifest.stat().st_size, 31):
        spoilt = copy(folder, scratch / "store")
        cut(find(spoilt, MANIFEST)[0], size)
        refusal = check_refused_or_whole(spoilt, expected)
        assert refusal is None or refusal.is_at_open


@pytest.mark.parametrize("pattern", [TABLE, BLOB, MANIFEST, CURRENT, WAL])
@pytest.mark.parametrize("how", ["gone", "empty", "half", "one byte short"])
def test_a_file_that_is_lost_is_named_and_nothing_is_begun_anew(
    whole: tuple[Path, Content], scratch: Path, pattern: str, how: str
) -> None:
    folder, expected = whole
    for number, original in enumerate(find(folder, pattern)):
        spoilt = copy(folder, scratch / f"store-{number}")
        path = spoilt / "rocksdb" / original.name
        size = path.stat().st_size
        if how == "gone":
            path.unlink()
        else:
            cut(path, {"empty": 0, "half": size // 2, "one byte short": size - 1}[how])
        refusal = check_refused_or_whole(spoilt, expected)
        if refusal is None:
            assert pattern == MANIFEST, f"{original.name} is not missed"
            continue
        assert refusal.is_at_open, f"{original.name} is missed late"
        name = {WAL: "log partition 1", BLOB: "*.blob"}.get(pattern, original.name)
        assert name in refusal.message
