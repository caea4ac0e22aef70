"""End offsets of topics, now and in the past, from a live cluster; used to compute lag."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.tables.end_offsets_file import EndOffset

SAMPLE_MINUTES = 10
"""The size of a lag window, each of which needs an end offset."""


def find_end_offsets(
    bootstrap: str, config: Path | None, timeout: float, hours: float, now: datetime
) -> list[EndOffset]:
    """End offsets of every partition now, and at the end of each window in the last ``hours``.

    The end offset at a past time is the offset of the first message at or after it, which the
    cluster looks up. Raises ``CommandError``.
    """
    from cli.log.cluster import Cluster
    from pipeline.tables.end_offsets_file import EndOffset

    cluster = Cluster(bootstrap, config, timeout)
    topics = cluster.list_topics()
    places = [(str(topic), n) for topic, value in topics.items() for n in range(value.partitions)]
    if not places:
        return []
    ends = cluster.list_offsets_at(places, None)
    found = [EndOffset(*place, end, now) for place, end in ends.items()]
    for time in compute_sample_times(now, hours):
        at_ms = round(time.timestamp() * 1000)
        for place, offset in cluster.list_offsets_at(places, at_ms).items():
            # No message is that late: the end offset has not changed since.
            end = ends.get(place, 0) if offset < 0 else offset
            found.append(EndOffset(*place, end, time))
    return found


def compute_sample_times(now: datetime, hours: float) -> Sequence[datetime]:
    """The last moment of each window before now, oldest first."""
    size = timedelta(minutes=SAMPLE_MINUTES)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    last = epoch + (now - epoch) // size * size
    count = int(timedelta(hours=hours) / size)
    ends = [last - number * size - timedelta(milliseconds=1) for number in range(count)]
    return ends[::-1]
