"""Detects records that a stream has read, or is to read, and that its log no longer has."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.source.logs.group_log import GroupLog
from pipeline.source.logs.identity import is_other
from pipeline.source.stream_offset import StreamOffset


@dataclass(frozen=True, slots=True)
class Loss:
    """``detail`` says what happened; ``goes_on`` is the next offset, ``None`` if there is none."""

    detail: str
    goes_on: int | None


def find_losses(log: GroupLog, known: StreamOffset) -> dict[int, Loss]:
    """Losses by partition: where the log differs from the one read up to these offsets.

    A log with another identity differs from the start, so nothing else is compared.
    """
    identity = log.identity
    other = f"the log is {identity}, not {known.log}" if is_other(identity, known.log) else None
    found = {}
    for partition, offset in sorted(known.offsets.items()):
        loss = _find_loss(log, known, partition, offset, other)
        if loss is not None:
            found[partition] = loss
    return found


def _find_loss(
    log: GroupLog, known: StreamOffset, partition: int, offset: int, other: str | None
) -> Loss | None:
    if partition not in log.partitions:
        return Loss(f"partition {partition} is gone", None)
    beginning = log.beginning(partition)
    if offset < beginning:
        return Loss(f"partition {partition} begins at offset {beginning}, not {offset}", beginning)
    end = log.end(partition)
    if end < offset:
        return Loss(f"partition {partition} ends at offset {end}, before {offset}", end)
    if other is not None:
        return Loss(f"partition {partition}, before offset {offset}: {other}", offset)
    mark = known.marks.get(partition)
    change = None if mark is None else log.find_change(partition, mark)
    if change is not None:
        return Loss(f"partition {partition}, before offset {offset}: {change}", offset)
    return None
