"""Verification of Kafka's segment files, by the checks that apply to a log alone."""

from __future__ import annotations

from collections.abc import Iterator

from model.ids import LogPartition
from storage.columnar.segment_blocks import read_segment_blocks
from storage.segments.errors import (
    NotSegments,
    SegmentDamage,
    SegmentError,
    TornTail,
    UnsupportedMessageFormat,
)
from storage.segments.folder import SegmentFolder
from storage.verify.partition import PartitionCheck
from storage.verify.violation import LogViolation, PartitionReport, Violation


def verify_segments(
    folder: SegmentFolder, *, allows_torn_tail: bool = False
) -> Iterator[PartitionReport]:
    """Verify the partitions of a folder, each up to its first violation.

    Raise ``UnsupportedMessageFormat`` and ``NotSegments``.
    """
    for partition in folder.partitions:
        yield verify_partition(folder, partition, allows_torn_tail=allows_torn_tail)


def verify_partition(
    folder: SegmentFolder, partition: LogPartition, *, allows_torn_tail: bool = False
) -> PartitionReport:
    """Verify one partition, up to its first violation."""
    files = folder.segments[partition]
    check = PartitionCheck(partition, start_offset=files[0].base_offset)
    try:
        try:
            for block in read_segment_blocks(files):
                check.apply(block)
        except TornTail as error:
            if not allows_torn_tail:
                raise
            check.report.notes += (str(error),)
        check.finish()
    except LogViolation as error:
        check.report.violation = Violation(
            partition, error.offset, error.key, error.rule, error.why
        )
    except (UnsupportedMessageFormat, NotSegments):
        raise
    except SegmentDamage as error:
        rule = "torn tail" if isinstance(error, TornTail) else "segment"
        why = f"{error.file}, byte {error.position}: {error.what}"
        check.report.violation = Violation(partition, error.offset, None, rule, why)
    except SegmentError as error:
        next_offset = check.report.next_offset
        check.report.violation = Violation(partition, next_offset, None, "segment", str(error))
    return check.report
