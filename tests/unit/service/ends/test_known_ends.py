"""Ends as they are known, with what is reported where they are not."""

from __future__ import annotations

from typing import Final

from coordinator.service.ends.end_reports import EndReports, ReportLimits
from coordinator.service.ends.known_ends import KnownEnds
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage, compute_image_of
from tests.support.service.given_ends import GivenEnds

ORDERS: Final = TopicName("orders")
FIRST: Final = TopicId(b"1" * 16)
SECOND: Final = TopicId(b"2" * 16)
PLACES: Final = [(ORDERS, 0), (ORDERS, 1), (TopicName("gone"), 0)]


class Rig:
    """``now_ms`` is the time, ``image`` the topics."""

    def __init__(self, truth: GivenEnds | None) -> None:
        self.now_ms = 0
        self.image: TopicImage = compute_image_of((Topic(ORDERS, FIRST, 1_000),))
        self.reports = EndReports(ReportLimits(1_000, 100))
        self.ends = KnownEnds(
            truth, self.reports, image=lambda: self.image, now_ms=lambda: self.now_ms
        )


async def test_the_truth_wins_and_a_report_fills_in() -> None:
    rig = Rig(GivenEnds(orders={0: 10}))
    rig.reports.take(FIRST, 0, 99, 0)
    rig.reports.take(FIRST, 1, 20, 0)
    expected = {(ORDERS, 0): 10, (ORDERS, 1): 20}
    assert await rig.ends.find_end_offsets(PLACES) == expected
    assert await rig.ends.find_offsets_at(PLACES, -1) == expected


async def test_a_report_says_nothing_of_the_beginning_or_of_a_time() -> None:
    rig = Rig(None)
    rig.reports.take(FIRST, 1, 20, 0)
    assert await rig.ends.find_offsets_at(PLACES, -2) == {}
    assert await rig.ends.find_offsets_at(PLACES, 5) == {}
    assert await rig.ends.find_end_offsets(PLACES) == {(ORDERS, 1): 20}


async def test_what_is_too_old_or_of_a_topic_that_is_made_again_is_not_known() -> None:
    rig = Rig(GivenEnds())
    rig.reports.take(FIRST, 1, 20, 0)
    rig.now_ms = 101
    assert await rig.ends.find_end_offsets(PLACES) == {}
    rig.reports.take(FIRST, 1, 20, 101)
    rig.image = compute_image_of((Topic(ORDERS, SECOND, 1_000),))
    assert await rig.ends.find_end_offsets(PLACES) == {}


async def test_very_many_partitions_are_all_found() -> None:
    rig = Rig(None)
    for partition in range(1_000):
        rig.reports.take(FIRST, partition, partition, 0)
    places = [(ORDERS, partition) for partition in range(1_000)]
    assert await rig.ends.find_end_offsets(places) == {place: place[1] for place in places}


async def test_where_no_reports_are_taken_the_truth_is_all() -> None:
    ends = KnownEnds(GivenEnds(orders={0: 1}), None, image=TopicImage, now_ms=lambda: 0)
    assert await ends.find_end_offsets(PLACES) == {(ORDERS, 0): 1}
