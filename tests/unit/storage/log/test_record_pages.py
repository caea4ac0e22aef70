"""Pages of records, the last one first: every record once, whatever the size of a page."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from model.ids import GroupId, LogOffset, LogPartition
from storage.codec.batch_encoding import encode_batch, encode_marker
from storage.codec.batches import decode_batch
from storage.log import record_pages
from storage.log.record_pages import RecordLine, RecordPage, RecordQuestion, find_topics
from storage.log.record_pages import read_record_page as read
from storage.log_store import read_batch_range
from tests.support.storage.appends import offset_key, offset_value

P = LogPartition(3)
G = GroupId("g")
ASK = RecordQuestion(P, G, frozenset(), None, None, LogOffset(1 << 60), 100)


class Log:
    """Batches in a list."""

    def __init__(self, *batches: bytes) -> None:
        self.batches = batches
        self.read = 0

    def read_batch_before(self, partition: LogPartition, offset: LogOffset) -> bytes | None:
        assert partition == P
        before = [batch for batch in self.batches if read_batch_range(batch)[0] < offset]
        self.read += bool(before)
        return before[-1] if before else None


def commits(base: int, count: int, *, time: int = 5, group: str = "g") -> bytes:
    pairs = [(offset_key(group, n), offset_value(n)) for n in range(count)]
    return encode_batch(base, pairs, time)


def offsets(lines: Sequence[RecordLine]) -> list[int]:
    return [line.offset for line in lines]


def read_pages(log: Log, question: RecordQuestion) -> list[RecordPage]:
    pages = [read(log, question)]
    while pages[-1].reached > 0:
        pages.append(read(log, question._replace(before=pages[-1].reached)))
        assert len(pages) < 50
    return pages


LOG = Log(commits(2, 3), commits(5, 2, group="h"), commits(7, 2, time=9), commits(12, 4, time=20))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9, 100])
def test_pages_of_every_size_have_every_record_once(size: int) -> None:
    pages = read_pages(LOG, ASK._replace(size=size))
    assert [offset for page in pages for offset in offsets(page.lines)] == [
        15, 14, 13, 12, 8, 7, 4, 3, 2,
    ]  # fmt: skip
    assert all(len(page.lines) <= size for page in pages)


def test_pages_of_all_groups() -> None:
    pages = read_pages(LOG, ASK._replace(group_id=None, size=4))
    assert [offset for page in pages for offset in offsets(page.lines)] == [
        15, 14, 13, 12, 8, 7, 6, 5, 4, 3, 2,
    ]  # fmt: skip


def test_a_record_is_decoded() -> None:
    line = read(LOG, ASK).lines[0]
    assert line.type == "OFFSET_COMMIT"
    assert '"group":"g"' in line.key_json
    assert '"offset":3' in line.value_json
    assert (line.base_offset, line.timestamp_ms, line.decode_error) == (12, 20, "")
    assert line.key == offset_key("g", 3)


def test_times_are_bounds_and_what_is_older_is_not_looked_at() -> None:
    log = Log(*LOG.batches)
    page = read(log, ASK._replace(since_ms=9, until_ms=20))
    assert (offsets(page.lines), page.reached) == ([8, 7], 0)
    assert log.read == 3
    assert offsets(read(LOG, ASK._replace(until_ms=9)).lines) == [4, 3, 2]


def test_types_and_the_offset_before() -> None:
    assert not read(LOG, ASK._replace(types=frozenset({3}))).lines
    assert offsets(read(LOG, ASK._replace(before=LogOffset(8), types=frozenset({1}))).lines) == [
        7, 4, 3, 2,
    ]  # fmt: skip


def test_a_page_that_had_much_to_look_through_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pages, "BATCHES_MAX", 1)
    pages = read_pages(LOG, ASK)
    assert [offsets(page.lines) for page in pages] == [[15, 14, 13, 12], [8, 7], [], [4, 3, 2], []]
    monkeypatch.setattr(record_pages, "BATCHES_MAX", 100)
    monkeypatch.setattr(record_pages, "READ_BYTES_MAX", 1)
    assert read_pages(LOG, ASK) == pages


def test_a_page_of_many_bytes_ends_early_with_at_least_one_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_pages, "PAGE_BYTES", 1)
    assert [offsets(page.lines) for page in read_pages(LOG, ASK)[:2]] == [[15], [14]]


def test_of_a_long_record_only_its_place_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pages, "RECORD_BYTES", 10)
    line = read(LOG, ASK).lines[0]
    assert (line.offset, line.key, line.value, line.key_json) == (15, None, None, "")
    assert "too long" in line.decode_error


def test_a_marker_is_listed_with_what_it_ends() -> None:
    def written(base: int, group: str, producer: int) -> bytes:
        pairs = [(offset_key(group, 0), offset_value(1))]
        return encode_batch(
            base, pairs, 5, producer_id=producer, producer_epoch=0, is_transactional=True
        )

    log = Log(
        written(0, "g", 7),
        encode_marker(1, 5, producer_id=7, producer_epoch=0, committed=True, coordinator_epoch=0),
        written(2, "h", 7),
        encode_marker(3, 5, producer_id=7, producer_epoch=0, committed=True, coordinator_epoch=0),
        written(4, "g", 8),
        encode_marker(5, 5, producer_id=8, producer_epoch=0, committed=False, coordinator_epoch=0),
    )
    page = read(log, ASK)
    assert [(line.offset, line.type) for line in page.lines] == [
        (5, "control:ABORT"),
        (4, "OFFSET_COMMIT"),
        (1, "control:COMMIT"),
        (0, "OFFSET_COMMIT"),
    ]
    only = read(log, ASK._replace(types=frozenset({-1})))
    assert offsets(only.lines) == [5, 1]
    assert offsets(read(log, ASK._replace(group_id=None)).lines) == [5, 4, 3, 2, 1, 0]


def test_topics_are_found_wherever_json_names_them() -> None:
    content = {
        "topic": "a",
        "subscribedTopicNames": ["b", "c"],
        "nested": [{"topicName": "d", "topicId": "e"}],
        "stateChangelogTopics": [{"name": "f", "partitions": 2}],
        "sourceTopics": ["g"],
        "metadata": "h",
    }
    assert sorted(find_topics(content)) == ["a", "b", "c", "d", "f", "g"]


def test_damage_is_said() -> None:
    broken = bytearray(commits(0, 1))
    broken[-1] ^= 1
    with pytest.raises(Exception, match="CRC") as caught:
        decode_batch(bytes(broken))
    with pytest.raises(type(caught.value)):
        read(Log(bytes(broken)), ASK)
