"""When partitions ended where: for the lag of groups in time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final, TypeAlias

from coordinator.service.ends.end_reports import ReportedEnd

Seen: TypeAlias = tuple[str | bytes, int]
"""A partition: the id of its topic, or the name where the id is not known."""

SAMPLES_MAX: Final = 32
"""The most samples of a partition; older ones are further apart."""

PARTITIONS_MAX: Final = 100_000
"""The most partitions with samples: those that were not looked at for longest are forgotten."""

SAMPLE_INTERVAL_MS: Final = 1_000


class _Samples:
    """End offsets of one partition by time (ms), both ascending."""

    __slots__ = ("ends", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self.ends = array("q")

    def add(self, end: int, at_ms: int) -> None:
        times, ends = self.times, self.ends
        if ends and end < ends[-1]:
            # The topic was made anew, or lost its last records.
            del times[:], ends[:]
        if times and at_ms - times[-1] < SAMPLE_INTERVAL_MS:
            return
        if len(ends) > 1 and ends[-2] == ends[-1] == end:
            times[-1] = at_ms
            return
        if len(times) >= SAMPLES_MAX:
            # Every other one of the older half.
            del times[1 : SAMPLES_MAX // 2 : 2], ends[1 : SAMPLES_MAX // 2 : 2]
        times.append(at_ms)
        ends.append(end)

    def find_written_ms(self, offset: int, end: int, now_ms: int) -> float | None:
        """About when the record at the offset was written, as if at a steady rate in between.

        ``end`` is where the partition ends now.
        """
        after = bisect_right(self.ends, offset)
        if not after:
            return None
        before_ms, began = self.times[after - 1], self.ends[after - 1]
        is_last = after == len(self.ends)
        after_ms, ended = (now_ms, end) if is_last else (self.times[after], self.ends[after])
        share = (offset + 1 - began) / (ended - began)
        return before_ms + share * (after_ms - before_ms)


class EndOffsetTimes:
    """The end offsets that were seen lately, as kafka-lag-exporter keeps them.

    Kafka does not tell when a record was written without reading it. Nothing is asked for here:
    whoever looks at the lag of a partition leaves a sample. Where a client reports the end, that
    is the better sample, because the end that a look finds there is older than the look.
    """

    def __init__(self, partitions_max: int = PARTITIONS_MAX) -> None:
        self._partitions_max = partitions_max
        self._samples: dict[Seen, _Samples] = {}

    def add(self, place: Seen, end: int, now_ms: int) -> None:
        """Note where the partition ends now, or that somebody looks where it was reported to end.

        A report is a sample of its own time; only the first one is noted when it is looked at.
        """
        samples = self._samples.pop(place, None) or _Samples()
        self._samples[place] = samples
        if len(self._samples) > self._partitions_max:
            del self._samples[next(iter(self._samples))]
        if not (samples.times and isinstance(end, ReportedEnd)):
            samples.add(end, now_ms)

    def add_reported(self, place: Seen, end: int, now_ms: int) -> None:
        """Note an end that is reported now, if somebody has looked at the lag of the partition.

        Others are not to lose their samples to a client that reports very many partitions.
        """
        samples = self._samples.get(place)
        if samples is not None:
            samples.add(end, now_ms)

    def compute_lag_ms(self, place: Seen, committed: int, end: int, now_ms: int) -> int | None:
        """For how long the first record that is not committed has been there.

        0 if there is none, ``None`` if it was there before the first sample.
        """
        if committed >= end:
            return 0
        samples = self._samples.get(place)
        written_ms = None if samples is None else samples.find_written_ms(committed, end, now_ms)
        return None if written_ms is None else max(0, now_ms - int(written_ms))
