"""Lag in time, from where partitions ended whenever somebody looked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.service.ends.end_offset_times import SAMPLES_MAX, EndOffsetTimes
from coordinator.service.ends.end_offsets import add_end_offsets
from coordinator.service.ends.end_reports import ReportedEnd
from model.ids import TopicName
from muster.v1 import types_pb2
from tests.support.service.given_ends import GivenEnds

ORDERS = TopicName("orders"), 0


def seen(*samples: tuple[int, int]) -> EndOffsetTimes:
    """``samples`` are seconds and end offsets."""
    times = EndOffsetTimes()
    for at_s, end in samples:
        times.add(ORDERS, end, at_s * 1_000)
    return times


def test_a_record_is_as_old_as_the_end_that_passed_it() -> None:
    times = seen((0, 100), (10, 200), (20, 200), (30, 300))
    assert times.compute_lag_ms(ORDERS, 149, 300, 30_000) == 25_000
    assert times.compute_lag_ms(ORDERS, 199, 300, 30_000) == 20_000
    assert times.compute_lag_ms(ORDERS, 200, 300, 30_000) == 9_900, "nothing was written until 20 s"
    assert times.compute_lag_ms(ORDERS, 299, 300, 40_000) == 10_000


def test_no_lag_is_none_in_time() -> None:
    assert EndOffsetTimes().compute_lag_ms(ORDERS, 300, 300, 0) == 0
    assert EndOffsetTimes().compute_lag_ms(ORDERS, 301, 300, 0) == 0, "the end may be an older one"


def test_what_was_there_before_the_first_look_is_not_known() -> None:
    times = seen((0, 100))
    assert times.compute_lag_ms(ORDERS, 99, 100, 5_000) is None
    assert times.compute_lag_ms(ORDERS, 100, 110, 5_000) == 4_500
    assert times.compute_lag_ms((TopicName("others"), 0), 1, 2, 5_000) is None


def test_a_topic_that_is_made_again_begins_anew() -> None:
    times = seen((0, 100), (10, 200), (20, 5))
    assert times.compute_lag_ms(ORDERS, 1, 5, 20_000) is None
    assert times.compute_lag_ms(ORDERS, 5, 6, 21_000) == 0


async def test_a_topic_that_is_made_again_with_more_records_begins_anew_too() -> None:
    times, now_ms = EndOffsetTimes(), 0

    async def look(topic_id: bytes, end: int) -> types_pb2.CommittedOffset:
        row = types_pb2.CommittedOffset(partition=0, offset=120)
        topic = types_pb2.CommittedTopic(topic_name="orders", topic_id=topic_id, partitions=[row])
        await add_end_offsets(GivenEnds(orders={0: end}), times, [topic], lambda: now_ms)
        return topic.partitions[0]

    await look(b"a" * 16, 100)
    now_ms = 3_600_000
    again = await look(b"b" * 16, 150)
    assert (again.end_offset, again.HasField("lag_ms")) == (150, False)
    now_ms += 10_000
    assert not (await look(b"b" * 16, 160)).HasField("lag_ms"), "it was there at the first look"


def test_a_partition_that_ends_where_it_did_needs_no_more_samples() -> None:
    times = seen((0, 100), *((second, 200) for second in range(10, 500)), (500, 300))
    assert times.compute_lag_ms(ORDERS, 120, 300, 500_000) == 500_000 - 2_100


def test_partitions_that_nobody_looks_at_are_forgotten() -> None:
    times = EndOffsetTimes(partitions_max=2)
    for partition in (0, 1, 0, 2):
        times.add((TopicName("orders"), partition), 10, 0)
    assert times.compute_lag_ms((TopicName("orders"), 0), 10, 11, 1_000) == 0
    assert times.compute_lag_ms((TopicName("orders"), 2), 10, 11, 1_000) == 0
    assert times.compute_lag_ms((TopicName("orders"), 1), 10, 11, 1_000) is None


@given(st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 50)), max_size=200), st.data())
def test_the_time_is_never_before_the_first_look_nor_after_now(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    times, now_ms, end = EndOffsetTimes(), 0, 0
    times.add(ORDERS, end, now_ms)
    for after_ms, written in steps:
        now_ms += after_ms
        end += written
        times.add(ORDERS, end, now_ms)
    samples = times._samples[ORDERS]
    assert len(samples.times) == len(samples.ends) <= SAMPLES_MAX
    assert list(samples.times) == sorted(set(samples.times))
    lags = [times.compute_lag_ms(ORDERS, offset, end, now_ms) for offset in range(end + 1)]
    assert all(lag is not None and 0 <= lag <= now_ms for lag in lags)
    assert lags == sorted(lags, key=lambda lag: -(lag or 0)), "a later record is younger"


def test_a_report_is_a_sample_of_its_own_time() -> None:
    """A look finds the end as it was reported: records that came since then are not of the look."""
    times = EndOffsetTimes()
    times.add(ORDERS, ReportedEnd(100), 0)
    times.add_reported(ORDERS, 200, 10_000)
    times.add(ORDERS, ReportedEnd(200), 19_000)
    times.add_reported(ORDERS, 300, 20_000)
    times.add(ORDERS, ReportedEnd(300), 29_000)
    assert times.compute_lag_ms(ORDERS, 249, 300, 30_000) == 15_000


def test_an_end_that_is_found_here_after_a_report_is_a_sample() -> None:
    times = seen((0, 100))
    times.add_reported(ORDERS, 200, 10_000)
    times.add(ORDERS, 300, 20_000)
    times.add(ORDERS, 300, 30_000)
    assert times.compute_lag_ms(ORDERS, 300, 301, 40_000) == 0
    assert times.compute_lag_ms(ORDERS, 299, 300, 40_000) == 20_000


def test_a_report_alone_leaves_no_sample() -> None:
    times = EndOffsetTimes(partitions_max=1)
    times.add(ORDERS, 100, 0)
    times.add_reported((TopicName("others"), 0), 100, 0)
    times.add_reported((TopicName("others"), 0), 200, 10_000)
    assert times.compute_lag_ms((TopicName("others"), 0), 150, 200, 20_000) is None
    assert times.compute_lag_ms(ORDERS, 100, 110, 5_000) == 4_500, "it kept its samples"
