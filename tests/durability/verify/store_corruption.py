"""Kinds of corruption of a store. Each changes a ``PlainStore`` at a place that chance chooses."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from model.ids import LogOffset
from storage.codec.batch_encoding import reencode_batch
from storage.codec.batches import BatchRecord
from storage.codec.record_codec import decode_value, encode_value
from storage.codec.wire import encode_zigzag
from storage.log_store import LatestEntry
from tests.durability.verify.planted import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIME,
    COUNT,
    HEADER_SIZE,
    LAST_DELTA,
    LEADER_EPOCH,
    LENGTH,
    MAGIC,
    MAX_TIME,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SEQUENCE,
    change_byte,
    decode,
    flip,
    get,
    make_right,
    put,
)
from tests.support.storage.plain_store import PlainStore

Plant = Callable[[PlainStore, random.Random], None]


class NoPlace(Exception):
    """The store has no place for this kind: another one is taken."""


def _choose(store: PlainStore, chance: random.Random) -> int:
    if not store.log:
        raise NoPlace
    return chance.randrange(len(store.log))


def _change(store: PlainStore, index: int, data: bytes) -> None:
    assert data != store.log[index][1]
    store.log[index] = store.log[index][0], data


def _step(chance: random.Random) -> int:
    return chance.choice((-1, 1)) * chance.choice((1, 2, 7, 100, 1 << 20))


# ------------------------------------------------------------------------------- bytes of batches


def bit(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    _change(store, index, flip(store.log[index][1], chance))


def byte(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    position = chance.randrange(len(data))
    _change(store, index, change_byte(data, position, data[position] + chance.randrange(1, 256)))


def cut(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    _change(store, index, data[: chance.randrange(len(data))])


def more_bytes(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    _change(store, index, data + data[: chance.randrange(1, len(data))])


def swapped(store: PlainStore, chance: random.Random) -> None:
    """Two batches lie under each other's offsets."""
    if len(store.log) < 2:
        raise NoPlace
    one, other = chance.sample(range(len(store.log)), 2)
    (first, data), (second, other_data) = store.log[one], store.log[other]
    store.log[one], store.log[other] = (first, other_data), (second, data)


def swapped_and_renumbered(store: PlainStore, chance: random.Random) -> None:
    """Two batches next to each other in the wrong order, at offsets that fit."""
    if len(store.log) < 2:
        raise NoPlace
    index = chance.randrange(len(store.log) - 1)
    (first, data), (_, other) = store.log[index], store.log[index + 1]
    second = first + get(other, LAST_DELTA) + 1
    store.log[index] = first, put(other, BASE_OFFSET, first)
    store.log[index + 1] = LogOffset(second), put(data, BASE_OFFSET, second)


def doubled(store: PlainStore, chance: random.Random) -> None:
    """A batch once more, in the place of the one after it or behind the last."""
    index = _choose(store, chance)
    data = store.log[index][1]
    offset = LogOffset(get(data, BASE_OFFSET) + get(data, LAST_DELTA) + 1)
    renumbered = put(data, BASE_OFFSET, offset) if chance.random() < 0.5 else data
    store.log[index + 1 : index + 2] = [(offset, renumbered)]


def lost(store: PlainStore, chance: random.Random) -> None:
    del store.log[_choose(store, chance)]


def lost_tail(store: PlainStore, chance: random.Random) -> None:
    del store.log[_choose(store, chance) :]


# ----------------------------------------------------------------------------- header of batches


def offset(store: PlainStore, chance: random.Random) -> None:
    """The CRC does not cover it."""
    index = _choose(store, chance)
    data = store.log[index][1]
    changed = put(data, BASE_OFFSET, get(data, BASE_OFFSET) + _step(chance))
    _change(store, index, changed)


def offset_and_place(store: PlainStore, chance: random.Random) -> None:
    """A batch at another offset, and kept under it."""
    index = _choose(store, chance)
    before, data = store.log[index]
    taken = {entry[0] for entry in store.log}
    after = before + abs(_step(chance))
    if after in taken:
        raise NoPlace
    store.log[index] = LogOffset(after), put(data, BASE_OFFSET, after)


def leader_epoch(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    _change(store, index, put(data, LEADER_EPOCH, get(data, LEADER_EPOCH) + _step(chance)))


def length(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    _change(store, index, put(data, LENGTH, get(data, LENGTH) + _step(chance)))


def magic(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    _change(store, index, change_byte(data, MAGIC, chance.choice((0, 1, 3, 127, 255))))


def _change_field(where: slice) -> Plant:
    def plant(store: PlainStore, chance: random.Random) -> None:
        index = _choose(store, chance)
        data = store.log[index][1]
        changed = put(data, where, get(data, where) + _step(chance))
        if changed == data:
            raise NoPlace
        _change(store, index, make_right(changed))

    return plant


def attributes(store: PlainStore, chance: random.Random) -> None:
    """One flag turned around: compression, times, transaction, control, or none that exists."""
    index = _choose(store, chance)
    data = store.log[index][1]
    flag = 1 << chance.randrange(16)
    _change(store, index, make_right(put(data, ATTRIBUTES, get(data, ATTRIBUTES) ^ flag)))


def sequence(store: PlainStore, chance: random.Random) -> None:
    index = _choose(store, chance)
    data = store.log[index][1]
    _change(store, index, make_right(put(data, SEQUENCE, get(data, SEQUENCE) + _step(chance))))


# ------------------------------------------------------------------- content, with its CRC right


def _find_standing(store: PlainStore, chance: random.Random) -> tuple[int, int, LatestEntry]:
    """A record that counts: index of its batch and in it, and its entry."""
    if not store.entries:
        raise NoPlace
    entry = chance.choice(store.entries)
    for index, (first, data) in enumerate(store.log):
        if first <= entry.offset <= first + get(data, LAST_DELTA):
            records = decode(data).records
            return index, [record.offset for record in records].index(entry.offset), entry
    raise AssertionError("the log has every entry")


def _replace_record(
    store: PlainStore, index: int, number: int, change: Callable[[BatchRecord], BatchRecord]
) -> None:
    batch = decode(store.log[index][1])
    records = list(batch.records)
    records[number] = change(records[number])
    latest = max(record.timestamp for record in records)
    _change(
        store,
        index,
        reencode_batch(replace(batch, records=tuple(records), max_timestamp=latest)),
    )


def _compute_content(entry: LatestEntry) -> bytes:
    """Key, length of the value, and value, as a record has them."""
    return entry.key + encode_zigzag(len(entry.value)) + entry.value


def standing_content(store: PlainStore, chance: random.Random) -> None:
    """Any byte of a record that counts."""
    index, _, entry = _find_standing(store, chance)
    data = store.log[index][1]
    content = _compute_content(entry)
    start = data.index(content, HEADER_SIZE)
    position = chance.randrange(start, start + len(content))
    _change(store, index, make_right(change_byte(data, position, data[position] ^ 0x01)))


def standing_value(store: PlainStore, chance: random.Random) -> None:
    index, number, _ = _find_standing(store, chance)
    _replace_record(
        store,
        index,
        number,
        lambda record: record._replace(value=flip(record.value or b"", chance)),
    )


def standing_key(store: PlainStore, chance: random.Random) -> None:
    index, number, _ = _find_standing(store, chance)
    _replace_record(
        store, index, number, lambda record: record._replace(key=flip(record.key or b"", chance))
    )


def standing_time(store: PlainStore, chance: random.Random) -> None:
    index, number, _ = _find_standing(store, chance)
    _replace_record(
        store,
        index,
        number,
        lambda record: record._replace(timestamp=record.timestamp + _step(chance)),
    )


def made_a_tombstone(store: PlainStore, chance: random.Random) -> None:
    index, number, _ = _find_standing(store, chance)
    _replace_record(store, index, number, lambda record: record._replace(value=None))


def tombstone_undone(store: PlainStore, chance: random.Random) -> None:
    """A deletion that was the last word on its key is a value."""
    standing = {entry.key for entry in store.entries}
    found = [
        (index, number)
        for index, (_, data) in enumerate(store.log)
        if not get(data, ATTRIBUTES) & 0x20
        for number, record in enumerate(decode(data).records)
        if record.value is None and record.key not in standing
    ]
    if not found:
        raise NoPlace
    index, number = chance.choice(found)
    _replace_record(store, index, number, lambda found: found._replace(value=b"\0\0"))


def no_key(store: PlainStore, chance: random.Random) -> None:
    index, number, _ = _find_standing(store, chance)
    _replace_record(store, index, number, lambda record: record._replace(key=None))


def record_gone(store: PlainStore, chance: random.Random) -> None:
    """A record less in a batch of several."""
    index, number, _ = _find_standing(store, chance)
    batch = decode(store.log[index][1])
    if len(batch.records) < 2:
        raise NoPlace
    records = batch.records[:number] + batch.records[number + 1 :]
    _change(store, index, reencode_batch(replace(batch, records=records, count=len(records))))


def record_attributes(store: PlainStore, chance: random.Random) -> None:
    """The first byte of a record, which means nothing yet."""
    index = _choose(store, chance)
    data = store.log[index][1]
    if get(data, COUNT) < 1:
        raise NoPlace
    position = HEADER_SIZE + (1 if data[HEADER_SIZE] < 0x80 else 2)
    _change(store, index, make_right(change_byte(data, position, chance.randrange(1, 256))))


def long_varint(store: PlainStore, chance: random.Random) -> None:
    """A record length in more bytes than it needs."""
    index = _choose(store, chance)
    data = store.log[index][1]
    if get(data, COUNT) < 1:
        raise NoPlace
    end = HEADER_SIZE + (1 if data[HEADER_SIZE] < 0x80 else 2)
    longer = data[HEADER_SIZE : end - 1] + bytes((data[end - 1] | 0x80, 0))
    _change(store, index, make_right(data[:HEADER_SIZE] + longer + data[end:]))


def lengths(store: PlainStore, chance: random.Random) -> None:
    """The length of a record, of its key or of its value."""
    index, _, entry = _find_standing(store, chance)
    data = store.log[index][1]
    key_at = data.index(_compute_content(entry), HEADER_SIZE)
    position = chance.choice((key_at - 1, key_at + len(entry.key)))
    _change(store, index, make_right(change_byte(data, position, data[position] ^ 0x02)))


def marker_turned(store: PlainStore, chance: random.Random) -> None:
    """A commit for an abort, or the other way."""
    found = [i for i, (_, data) in enumerate(store.log) if get(data, ATTRIBUTES) & 0x20]
    if not found:
        raise NoPlace
    index = chance.choice(found)
    batch = decode(store.log[index][1])
    (record,) = batch.records
    key = record.key or b""
    turned = record._replace(key=key[:-1] + bytes((key[-1] ^ 1,)))
    _change(store, index, reencode_batch(replace(batch, records=(turned,))))


def marker_bytes(store: PlainStore, chance: random.Random) -> None:
    found = [i for i, (_, data) in enumerate(store.log) if get(data, ATTRIBUTES) & 0x20]
    if not found:
        raise NoPlace
    index = chance.choice(found)
    data = store.log[index][1]
    _change(store, index, make_right(flip(data, chance, HEADER_SIZE)))


# ------------------------------------------------------------------------- beside the log


def latest_value(store: PlainStore, chance: random.Random) -> None:
    number = _choose_entry(store, chance)
    entry = store.entries[number]
    store.entries[number] = entry._replace(value=flip(entry.value, chance))


def latest_offset(store: PlainStore, chance: random.Random) -> None:
    number = _choose_entry(store, chance)
    entry = store.entries[number]
    store.entries[number] = entry._replace(offset=LogOffset(entry.offset + _step(chance)))


def latest_time(store: PlainStore, chance: random.Random) -> None:
    number = _choose_entry(store, chance)
    entry = store.entries[number]
    store.entries[number] = entry._replace(timestamp=entry.timestamp + _step(chance))


def latest_key(store: PlainStore, chance: random.Random) -> None:
    number = _choose_entry(store, chance)
    entry = store.entries[number]
    store.entries[number] = entry._replace(key=flip(entry.key, chance))


def latest_lost(store: PlainStore, chance: random.Random) -> None:
    del store.entries[_choose_entry(store, chance)]


def latest_left_over(store: PlainStore, chance: random.Random) -> None:
    """An entry that a tombstone deleted, or a superseded one."""
    gone = [
        LatestEntry(record.key, LogOffset(record.offset), record.timestamp, record.value)
        for _, data in store.log
        if not get(data, ATTRIBUTES) & 0x30
        for record in decode(data).records
        if record.key is not None and record.value is not None
    ]
    gone = [entry for entry in gone if entry not in store.entries]
    if not gone:
        raise NoPlace
    entry = chance.choice(gone)
    store.entries = [each for each in store.entries if each.key != entry.key] + [entry]


def _choose_entry(store: PlainStore, chance: random.Random) -> int:
    if not store.entries:
        raise NoPlace
    return chance.randrange(len(store.entries))


def pending(store: PlainStore, chance: random.Random) -> None:
    """An entry that is lost, changed, another producer's, or one that nobody waits for."""
    how = chance.randrange(4)
    if how == 3:
        entry = LatestEntry(b"\0\1\0\1g\0\1t\0\0\0\0", LogOffset(1), 1, b"\0\4")
        store.waiting.append((chance.randrange(100), entry))
        return
    if not store.waiting:
        raise NoPlace
    number = chance.randrange(len(store.waiting))
    producer_id, entry = store.waiting.pop(number)
    if how == 1:
        store.waiting.append((producer_id + 1, entry))
    elif how == 2:
        store.waiting.append((producer_id, entry._replace(value=flip(entry.value, chance))))


def watermark(store: PlainStore, chance: random.Random) -> None:
    """Acknowledged further than the log reaches."""
    store.durable += abs(_step(chance))


def watermark_behind(store: PlainStore, chance: random.Random) -> None:
    """As after a power cut."""
    if not store.durable:
        raise NoPlace
    store.durable = chance.randrange(store.durable)


def side(store: PlainStore, chance: random.Random) -> None:
    if not store.sides:
        raise NoPlace
    number = chance.randrange(len(store.sides))
    key, value = store.sides[number]
    how = chance.randrange(3)
    if how == 0:
        store.sides[number] = bytes((chance.randrange(64, 256),)) + key[1:], value
    elif how == 1:
        store.sides[number] = key, value[: chance.randrange(len(value))]
    else:
        store.sides[number] = key + b"\xff", value


def kept(store: PlainStore, chance: random.Random) -> None:
    """A record below the history start that is not noted, or elsewhere, or one that is not."""
    records = sorted(key for key in store.notes if key[:1] == b"\0")
    if not records:
        raise NoPlace
    key = chance.choice(records)
    how = chance.randrange(3)
    packed = store.notes.pop(key)
    if how == 1:
        store.notes[key] = flip(packed, chance)
    elif how == 2:
        store.notes[key + b"\0"] = packed


def history_start(store: PlainStore, chance: random.Random) -> None:
    """Moved to another batch of the log, or not there."""
    if b"" not in store.notes:
        raise NoPlace
    packed = store.notes.pop(b"")
    start = int.from_bytes(packed[:8], "big")
    offsets = [first for first, _ in store.log if first != start]
    if chance.random() < 0.8 and offsets:
        store.notes[b""] = chance.choice(offsets).to_bytes(8, "big") + packed[8:]


# -------------------------------------------------------------------------------- superseded


def superseded_value(store: PlainStore, chance: random.Random) -> None:
    """A commit that another one superseded says another offset, in all right bytes."""
    offsets = {entry.offset for entry in store.entries}
    offsets.update(entry.offset for _, entry in store.waiting)
    found = [
        (index, number)
        for index, (_, data) in enumerate(store.log)
        if not get(data, ATTRIBUTES) & 0x30
        for number, record in enumerate(decode(data).records)
        if record.value is not None
        and (record.key or b"")[:2] == b"\0\1"
        and record.offset not in offsets
    ]
    if not found:
        raise NoPlace
    index, number = chance.choice(found)

    def change(record: BatchRecord) -> BatchRecord:
        version, value = decode_value(1, record.value or b"")
        moved = replace(value, offset=value.offset + abs(_step(chance)))  # type: ignore[union-attr]
        return record._replace(value=encode_value(moved, version))

    _replace_record(store, index, number, change)


FOUND_OR_HARMLESS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        bit,
        byte,
        cut,
        more_bytes,
        swapped,
        swapped_and_renumbered,
        doubled,
        lost,
        lost_tail,
        offset,
        offset_and_place,
        leader_epoch,
        length,
        magic,
        attributes,
        sequence,
        standing_content,
        standing_value,
        standing_key,
        standing_time,
        made_a_tombstone,
        tombstone_undone,
        no_key,
        record_gone,
        record_attributes,
        long_varint,
        lengths,
        marker_turned,
        marker_bytes,
        latest_value,
        latest_offset,
        latest_time,
        latest_key,
        latest_lost,
        latest_left_over,
        pending,
        watermark,
        watermark_behind,
        side,
        kept,
        history_start,
    )
} | {
    "base_timestamp": _change_field(BASE_TIME),
    "max_timestamp": _change_field(MAX_TIME),
    "producer_id": _change_field(PRODUCER_ID),
    "producer_epoch": _change_field(PRODUCER_EPOCH),
    "count": _change_field(COUNT),
    "last_offset": _change_field(LAST_DELTA),
}
"""Those that verifying finds, unless what the log says and comes to is the same as before."""

HISTORY_ALONE: dict[str, Plant] = {"superseded_value": superseded_value}
"""Those that nothing can find: what is superseded is another, whole and of right bytes."""
