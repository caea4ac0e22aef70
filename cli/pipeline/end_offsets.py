"""Where topics end now, and ended some time ago, as a live cluster tells: for lag."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.tables.end_offsets import EndOffset

SAMPLE_MINUTES = 10
"""As long as a window of lag: an end offset for each."""


def find_end_offsets(
    bootstrap: str, config: Path | None, timeout: float, hours: float, now: datetime
) -> list[EndOffset]:
    """Of every partition the end now, and at the end of each window in so many hours before.

    Where a partition ended at a time is the first message that is as late, which its cluster finds.
    Raises ``CommandError``.
    """
    from cli.log.cluster import Cluster
    from pipeline.tables.end_offsets import EndOffset

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
            # No message is as late: it had ended where it ends now.
            end = ends.get(place, 0) if offset < 0 else offset
            found.append(EndOffset(*place, end, time))
    return found


def compute_sample_times(now: datetime, hours: float) -> Sequence[datetime]:
    """The last moment of each window before now, the oldest first."""
    size = timedelta(minutes=SAMPLE_MINUTES)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    last = epoch + (now - epoch) // size * size
    count = int(timedelta(hours=hours) / size)
    ends = [last - number * size - timedelta(milliseconds=1) for number in range(count)]
    return ends[::-1]
