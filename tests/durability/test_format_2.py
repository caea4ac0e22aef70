"""A store that the last format's own code has written is taken over with nothing lost.

``make takeover`` does it with 5 million records.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from model.ids import LogPartition
from storage.log.fold import PartitionFold
from storage.log_store import LogStore
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from tests.durability import format_2_writer
from tests.groups import CHECKOUT
from tests.support.storage.appends import append, mark_all, offset_key, offset_value

WRITER = CHECKOUT / "tests" / "golden" / "format_2" / "writer.zip"
RECORDS = int(os.environ.get("TAKEOVER_RECORDS", "60000"))
PARTITIONS = 4
WRITE_TIMEOUT_S = 3_000


def write_with_old_code(folder: Path, records: int) -> None:
    """The store as its server left it when it was killed."""
    script = Path(format_2_writer.__file__)
    subprocess.run(
        [sys.executable, str(script), str(folder), str(records)],
        env={**os.environ, "PYTHONPATH": str(WRITER)},
        check=True,
        timeout=WRITE_TIMEOUT_S,
    )


def check(store: LogStore) -> int:
    """``latest`` and ``pending`` are those of the log; how many records it has."""
    for partition in map(LogPartition, range(PARTITIONS)):
        fold = PartitionFold()
        for batch in store.read_log(partition):
            fold.apply(batch)
        latest = {entry.key: entry for entry in store.latest(partition)}
        assert latest == fold.latest
        pending = {
            (producer_id, key): entry
            for producer_id, entries in fold.pending.items()
            for key, entry in entries.items()
        }
        found = {(number, entry.key): entry for number, entry in store.pending(partition)}
        assert found == pending
    return sum(store.next_offset(LogPartition(number)) for number in range(PARTITIONS))


def test_it_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    write_with_old_code(folder, RECORDS)
    store = open_store(folder, partitions=99)
    assert check(store) >= RECORDS
    ends = [store.next_offset(LogPartition(number)) for number in range(PARTITIONS)]
    positions = [store.checkpoint_offset(LogPartition(number)) for number in range(PARTITIONS)]
    assert positions == ends
    assert [key for key, _ in store.side()] == [b"\x01side"]
    # It goes on as one of this format: what comes now is replayed by the next start.
    append(store, {0: [(offset_key("new"), offset_value(1))]})
    mark_all(store)
    store.close()
    store = open_store(folder, partitions=99)
    check(store)
    assert store.get_latest(LogPartition(0), offset_key("new")) is not None
    store.close()


def test_a_reader_reads_it_as_it_is(tmp_path: Path) -> None:
    """``muster log`` on a folder of the last format, before any server has opened it."""
    folder = tmp_path / "store"
    write_with_old_code(folder, 5_000)
    before = sorted(path.name for path in (folder / "rocksdb").iterdir())
    reader = open_store_reader(folder)
    check(reader)  # type: ignore[arg-type]
    reader.close()
    assert sorted(path.name for path in (folder / "rocksdb").iterdir()) == before


def test_the_code_of_that_format_refuses_what_was_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    write_with_old_code(folder, 1_000)
    open_store(folder, partitions=99).close()
    refused = subprocess.run(
        [sys.executable, "-c", f"{_OPEN}(r'{folder}', partitions=1)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(WRITER)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "has format 4, this version reads up to 2: use a newer version" in refused.stderr


_OPEN = "from storage.rocks.rocks_opening import open_store; open_store"
