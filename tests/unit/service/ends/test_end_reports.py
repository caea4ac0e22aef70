"""Which reports of end offsets are believed, and for how long."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from coordinator.service.ends.end_reports import EndReports, ReportLimits, Verdict
from model.ids import TopicId

A: Final = TopicId(b"a" * 16)
B: Final = TopicId(b"b" * 16)
MAX_AGE_MS: Final = 100


def reports(partitions_max: int = 10) -> EndReports:
    return EndReports(ReportLimits(partitions_max, MAX_AGE_MS))


def test_a_report_is_believed_until_it_is_too_old() -> None:
    kept = reports()
    assert kept.find(A, 0, 0) is None
    assert kept.take(A, 0, 7, 1_000) is Verdict.TAKEN
    assert kept.find(A, 0, 1_000 + MAX_AGE_MS) == 7
    assert kept.find(A, 0, 1_001 + MAX_AGE_MS) is None
    assert kept.find(A, 1, 1_000) is None
    assert kept.find(B, 0, 1_000) is None, "another topic, be it of the same name"


def test_the_same_end_again_is_a_new_report() -> None:
    kept = reports()
    kept.take(A, 0, 7, 0)
    assert kept.take(A, 0, 7, 90) is Verdict.TAKEN
    assert kept.find(A, 0, 190) == 7


def test_a_lower_end_waits_until_the_higher_one_is_too_old() -> None:
    """A late report changes nothing, and a mistake is not kept alive by those that are right."""
    kept = reports()
    kept.take(A, 0, 1 << 62, 0)
    assert kept.take(A, 0, 7, 60) is Verdict.LOWER
    assert kept.find(A, 0, 100) == 1 << 62
    assert kept.find(A, 0, 101) is None
    assert kept.take(A, 0, 7, 101) is Verdict.TAKEN
    assert kept.find(A, 0, 101) == 7


def test_nobody_takes_the_place_of_others() -> None:
    kept = reports(2)
    kept.take(A, 0, 1, 0)
    kept.take(A, 1, 1, 50)
    assert kept.take(B, 0, 1, 60) is Verdict.NO_ROOM
    assert kept.take(A, 1, 2, 60) is Verdict.TAKEN, "it has a place"
    assert kept.take(B, 0, 1, 101) is Verdict.TAKEN, "the first one is too old"
    assert kept.find(A, 0, 101) is None
    assert (kept.find(A, 1, 101), kept.find(B, 0, 101), len(kept)) == (2, 1, 2)


def test_without_room_none_is_taken() -> None:
    assert reports(0).take(A, 0, 1, 0) is Verdict.NO_ROOM


_STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from([A, B]),
        st.integers(0, 3),
        st.integers(0, (1 << 63) - 1) | st.integers(0, 3),
        st.integers(0, 2 * MAX_AGE_MS),
    ),
    max_size=60,
)


@given(_STEPS, st.integers(0, 5))
def test_what_is_shown_is_the_highest_that_would_be_believed(
    steps: list[tuple[TopicId, int, int, int]], partitions_max: int
) -> None:
    """Against a table that forgets nothing: a refusal is the only way in which they differ."""
    kept, table, now_ms = reports(partitions_max), dict[tuple[TopicId, int], tuple[int, int]](), 0
    for topic_id, partition, end, passed_ms in steps:
        now_ms += passed_ms
        place = topic_id, partition
        believed = {of: row for of, row in table.items() if now_ms - row[1] <= MAX_AGE_MS}
        verdict = kept.take(topic_id, partition, end, now_ms)
        if place in believed:
            assert verdict is (Verdict.LOWER if end < believed[place][0] else Verdict.TAKEN)
        elif len(believed) < partitions_max - 1:
            assert verdict is Verdict.TAKEN
        else:
            assert verdict is (Verdict.TAKEN if len(believed) < partitions_max else Verdict.NO_ROOM)
        if verdict is Verdict.TAKEN:
            table[place] = end, now_ms
        assert len(kept) <= partitions_max
        for of in [(of_topic, number) for of_topic in (A, B) for number in range(4)]:
            row = table.get(of)
            is_new = row is not None and now_ms - row[1] <= MAX_AGE_MS
            assert kept.find(*of, now_ms) == (row[0] if row is not None and is_new else None)
