"""Stores for the tests of faults: what lies in them, copies of them, and damage to the copies."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from model.ids import LogPartition
from storage.log_store import LatestEntry, StoreError
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from tests.support.storage.appends import Pair, append, compact, mark_all, offset_key, offset_value

PARTITIONS = 2


class Content(NamedTuple):
    """All that a store says of itself."""

    logs: tuple[tuple[bytes, ...], ...]
    latest: tuple[tuple[LatestEntry, ...], ...]
    side: tuple[tuple[bytes, bytes], ...]


def read_all(store: RocksLogStore) -> Content:
    """Everything in the store. Raises ``StoreError`` where it cannot be read."""
    partitions = [LogPartition(number) for number in range(store.partitions)]
    return Content(
        tuple(tuple(store.read_log(partition)) for partition in partitions),
        tuple(tuple(store.latest(partition)) for partition in partitions),
        tuple(store.side()),
    )


def open_and_read(folder: Path) -> Content:
    """Opens the store, reads everything and checks that ``latest`` is the log compacted."""
    store = open_store(folder, partitions=PARTITIONS)
    try:
        content = read_all(store)
    finally:
        store.close()
    for log, latest in zip(content.logs, content.latest, strict=True):
        assert list(latest) == compact(log)
    return content


def commits(first: int, count: int) -> list[Pair]:
    """Records of committed offsets, of some dozens of keys."""
    chance = random.Random(first)
    return [
        (offset_key(f"group-{chance.randrange(40)}", chance.randrange(5)), offset_value(number))
        for number in range(first, first + count)
    ]


def fill(store: RocksLogStore, rounds: int, records: int) -> None:
    """Commits to all partitions, acknowledged round by round."""
    for number in range(rounds):
        store.write([], [(b"side", b"%d" % number)])
        for partition in range(PARTITIONS):
            append(store, {partition: commits(number * records, records)})
        mark_all(store)


def make_store(folder: Path) -> Content:
    """A store as a killed process leaves it: tables, blobs and a log tail, all acknowledged."""
    live = folder.with_name("live")
    store = open_store(live, partitions=PARTITIONS, cluster_id="C" * 22)
    fill(store, rounds=20, records=60)
    store.close()
    store = open_store(live, partitions=PARTITIONS)
    fill(store, rounds=24, records=60)
    content = read_all(store)
    shutil.copytree(live, folder)
    store.close()
    return content


def copy(folder: Path, to: Path) -> Path:
    """A copy to spoil, in the place of the one before."""
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))


def find(folder: Path, pattern: str) -> list[Path]:
    """RocksDB's files of that name which have anything in them."""
    return sorted(path for path in (folder / "rocksdb").glob(pattern) if path.stat().st_size)


def flip_bit(path: Path, position: int, bit: int) -> None:
    """Turns one bit of a file around."""
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes((byte ^ 1 << bit,)))


def cut(path: Path, size: int) -> None:
    """Leaves the first ``size`` bytes of a file."""
    os.truncate(path, size)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a store that cannot be read said, and whether when it was opened."""

    message: str
    is_at_open: bool


def open_damaged(folder: Path) -> Content | Refusal:
    """What is found in a damaged store; the message of a refusal is one line for people."""
    try:
        store = open_store(folder, partitions=PARTITIONS)
    except StoreError as error:
        return Refusal(check_line(str(error)), is_at_open=True)
    try:
        return read_all(store)
    except StoreError as error:
        return Refusal(check_line(str(error)), is_at_open=False)
    finally:
        store.close()


def check_refused_or_whole(folder: Path, expected: Content) -> Refusal | None:
    """What a damaged store says, twice the same; ``None`` where nothing of it is lost."""
    found = open_damaged(folder)
    if not isinstance(found, Refusal):
        assert found == expected, "it was read short"
        return None
    again = open_damaged(folder)
    assert isinstance(again, Refusal), "the second time it was not refused"
    return found


def check_line(message: str) -> str:
    """The message itself, if it is fit for people."""
    assert message, "nothing was said"
    assert "\n" not in message
    return message
