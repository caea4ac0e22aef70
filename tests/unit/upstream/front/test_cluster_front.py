"""What the front of a cluster counts."""

from typing import Any, cast

from upstream.cluster.cluster import Cluster
from upstream.front.cluster_front import ClusterFront, Places
from upstream.statistics import UpstreamStatistics


def test_requests_that_are_passed_on_are_counted_by_their_api() -> None:
    statistics = UpstreamStatistics()
    front = ClusterFront(
        cast(Cluster, None),
        cast(Places, None),
        node_id=1,
        address_of=lambda node_id: None,
        passes_anonymous=True,
        statistics=statistics,
    )
    keys: list[Any] = [3, 3, 19, 9_999]
    for key in keys:
        front.note_passed_on(key)
    assert statistics.requests_passed_on == {"Metadata": 2, "CreateTopics": 1, "api 9999": 1}
