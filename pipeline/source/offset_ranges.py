"""The start and end of a query in each partition, from its options and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.decoding.bounds import Bounds
from pipeline.source.errors import DataLoss, OptionError
from pipeline.source.filters import PushedFilters
from pipeline.source.logs.group_log import GroupLog
from pipeline.source.options import EARLIEST, LATEST, LogOptions, Offsets


def compute_batch_bounds(
    log: GroupLog, options: LogOptions, pushed: PushedFilters
) -> list[tuple[int, Bounds]]:
    """The bounds of a batch query in each partition; the end of the log stays open."""
    _check_named(log, options)
    found = []
    for partition in log.partitions:
        if not pushed.has_partition(partition):
            continue
        start = compute_start(log, options, partition, Offsets(EARLIEST))
        end = _compute_end(log, options, partition)
        bounds = Bounds(start, end).intersect(pushed.bounds)
        if not bounds.is_empty():
            found.append((partition, bounds))
    return found


def compute_start(log: GroupLog, options: LogOptions, partition: int, default: Offsets) -> int:
    """The first requested offset. Raise ``OptionError`` and ``DataLoss``."""
    if options.starting_timestamp_ms is not None:
        return _compute_start_by_time(log, options, partition, options.starting_timestamp_ms)
    is_batch = default.default == EARLIEST
    offset = (options.starting_offsets or default).of(partition)
    if offset == EARLIEST:
        return log.beginning(partition)
    if offset == LATEST:
        if is_batch:
            raise OptionError("startingOffsets cannot be latest (-1) in a batch query")
        return log.end(partition)
    beginning = log.beginning(partition)
    if offset < beginning:
        check_loss(options, f"partition {partition} begins at offset {beginning}, not {offset}")
        return beginning
    end = log.end(partition)
    if offset > end:
        check_loss(options, f"partition {partition} ends at offset {end}, before {offset}")
        return end
    return offset


def check_loss(options: LogOptions, what: str) -> None:
    """Raise ``DataLoss`` unless ``failOnDataLoss`` is false."""
    if options.fail_on_data_loss:
        raise DataLoss(f"{what}; use failOnDataLoss=false to continue with the existing records")


def limit_offsets(starts: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Ends with at most ``most`` offsets in total, shared in proportion to the available ones."""
    waiting = {partition: end - starts[partition] for partition, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    return {
        partition: starts[partition] + min(count, max(1, most * count // total) if count else 0)
        for partition, count in waiting.items()
    }


def _compute_start_by_time(log: GroupLog, options: LogOptions, partition: int, wall_ms: int) -> int:
    found = log.find_time(partition, wall_ms)
    if found is not None:
        return found
    if options.is_latest_without_match:
        return log.end(partition)
    raise OptionError(
        f"partition {partition} has no record at or after startingTimestamp {wall_ms}: use "
        "startingOffsetsByTimestampStrategy=latest to begin at its end"
    )


def _compute_end(log: GroupLog, options: LogOptions, partition: int) -> int | None:
    offset = LATEST if options.ending_offsets is None else options.ending_offsets.of(partition)
    if offset == LATEST:
        return None
    end = log.end(partition)
    if offset > end:
        check_loss(options, f"partition {partition} ends at offset {end}, before {offset}")
    return offset


def _check_named(log: GroupLog, options: LogOptions) -> None:
    for offsets in (options.starting_offsets, options.ending_offsets):
        check_partitions(log, () if offsets is None else tuple(offsets.by_partition))


def check_partitions(log: GroupLog, named: Sequence[int]) -> None:
    """Raise ``OptionError`` for partitions that do not exist."""
    missing = sorted(set(named) - set(log.partitions))
    if missing:
        raise OptionError(f"partition {missing[0]} does not exist")
