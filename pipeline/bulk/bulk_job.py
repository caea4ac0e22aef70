"""Makes a bulk from Kafka's segments, atomically."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.bulk.bulk_files import find_attempt, write_compacted_log, write_latest, write_pending
from pipeline.bulk.bulk_fold import compute_latest, compute_open_producers, compute_pending
from pipeline.bulk.bulk_options import BulkOptions
from pipeline.bulk.bulk_scan import DAMAGE, PART, SCANNED, PartFound, Place, scan_slice
from pipeline.decoding.bounds import Bounds
from pipeline.schema import TRUNCATED
from pipeline.source.errors import OptionError, SourceError
from pipeline.source.logs.group_log import SegmentSlice
from pipeline.source.logs.paths import find_path
from pipeline.source.logs.segment_log import SegmentLog
from pipeline.source.slice_reading import open_log
from pipeline.tables.writing import escape
from storage.transfer.bulk import BULK_FILE, Bulk, BulkPartition, is_bulk, write_bulk
from storage.transfer.export_log import SIDE_FILE
from storage.transfer.import_log import compute_partitions
from storage.transfer.sorted_files import LATEST, LOG, PENDING, SUFFIX

_SCRATCH = "scratch"


def make_bulk(
    spark: SparkSession,
    path: str,
    out: Path,
    options: BulkOptions,
    say: Callable[[str], None] = lambda step: None,
) -> Bulk:
    """Fold Kafka's segments into a bulk, replacing the folder's previous bulk.

    Every executor must see both paths. ``say`` hears of what is done next. Raise
    ``SourceError`` if the log is damaged, and ``ImportRefused`` for an invalid partition count;
    the folder is then unchanged.
    """
    _put_back(out)
    if out.exists() and any(out.iterdir()) and not is_bulk(out):
        raise OptionError(f"{out} is not empty and has no {BULK_FILE}: use another folder")
    log = open_log(path)
    try:
        if not isinstance(log, SegmentLog):
            raise OptionError(f"{path} is a store: a bulk can be made from Kafka's segments only")
        tasks = log.plan([(partition, Bounds()) for partition in log.partitions], None)
        partitions, notes = log.partitions, log.notes
    finally:
        log.close()
    least = max(partitions) + 1
    folder = find_path(path)
    count = compute_partitions(folder, least, len(partitions) == least, options.partitions)
    writing = out.with_name(f"{out.name}.writing")
    shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir(parents=True)
    try:
        fold = _Fold(spark, tasks, writing, options, say)
        bulk = fold.run(count, partitions, notes)
        side = folder / SIDE_FILE
        if side.is_file():
            shutil.copy(side, writing)
        write_bulk(writing, bulk)
        _swap(writing, out)
    finally:
        shutil.rmtree(writing, ignore_errors=True)
    return bulk


def _put_back(out: Path) -> None:
    """Restore the old bulk if a run was killed in ``_swap``."""
    replaced = _name_replaced(out)
    if is_bulk(replaced) and not out.exists():
        replaced.rename(out)


def _name_replaced(out: Path) -> Path:
    return out.with_name(f"{out.name}.replaced")


def _swap(writing: Path, out: Path) -> None:
    replaced = _name_replaced(out)
    shutil.rmtree(replaced, ignore_errors=True)
    if out.exists():
        out.rename(replaced)
    writing.rename(out)
    shutil.rmtree(replaced, ignore_errors=True)


class _Fold:
    def __init__(
        self,
        spark: SparkSession,
        tasks: Sequence[Sequence[Any]],
        folder: Path,
        options: BulkOptions,
        say: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._say = say
        self._folder = folder.absolute()
        self._options = options
        numbered: list[tuple[int, SegmentSlice]] = list(
            enumerate(p for task in tasks for p in task)
        )
        self._slices = dict(numbered)
        left = iter(numbered)
        self._tasks = [[next(left) for _ in task] for task in tasks]

    def run(self, count: int, partitions: Sequence[int], notes: Sequence[str]) -> Bulk:
        """The bulk; its files are then the only ones in the folder."""
        self._say("log is read")
        scanned = self._scan()
        found = self._collect_parts(scanned)
        said = [*notes, *self._check_damage(scanned, found)]
        files: dict[str, list[str]] = {LATEST: [], PENDING: [], LOG: []}
        self._say("current records are found")
        latest = self._keep("latest", compute_latest(scanned))
        files[LATEST] = write_latest(latest, self._folder)
        pending: DataFrame | None = None
        if any(part.waiting for part in found.values()) and not self._options.aborts_open:
            pending = self._keep("pending", compute_pending(scanned))
            files[PENDING] = write_pending(pending, self._folder)
        ends, records = self._describe_log(found)
        if self._options.is_compacted:
            waiting = latest.limit(0) if pending is None else pending
            ends, records = {}, defaultdict(int)
            self._say("current records are written")
            written = write_compacted_log(latest, waiting, self._slices, self._folder)
            for partition, last, kept, names in written:
                ends[partition] = max(ends.get(partition, -1), last)
                records[partition] += kept
                files[LOG] += names
        else:
            files[LOG] = [name for part in found.values() for name in part.files]
        producers: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for row in compute_open_producers(scanned).collect():
            producers[row["partition"]][row["producer_id"]] = row["producer_epoch"]
        shutil.rmtree(self._folder / _SCRATCH)
        self._delete_others(files)
        by_partition = self._group_parts(found)
        return Bulk(
            count,
            self._options.is_compacted,
            tuple(
                BulkPartition(
                    partition,
                    _compute_end(by_partition[partition]),
                    records.get(partition, 0),
                    ends.get(partition, -1),
                    by_partition[partition][-1].last_ms if by_partition[partition] else 0,
                    max((part.highest_ms for part in by_partition[partition]), default=0),
                    producers[partition],
                    self._options.aborts_open,
                )
                for partition in partitions
            ),
            {family: tuple(sorted(names)) for family, names in files.items()},
            sum(part.batches for part in found.values()),
            sum(part.records for part in found.values()),
            sum(part.bytes for part in found.values()),
            max((part.highest_producer_id for part in found.values()), default=-1),
            tuple(said),
        )

    def _scan(self) -> DataFrame:
        """Scan the log in one pass, and save the rows, because several steps read them."""
        tasks = self._tasks
        folder = None if self._options.is_compacted else self._folder

        def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            attempt = find_attempt()
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    for number, part in tasks[task]:
                        yield from scan_slice(Place(number, part, folder, attempt))

        numbers = self._spark.range(0, len(tasks), 1, max(1, len(tasks)))
        return self._keep("scanned", numbers.mapInArrow(scan, from_arrow_schema(SCANNED)), "kind")

    def _keep(self, name: str, rows: DataFrame, *partition_by: str) -> DataFrame:
        path = str(self._folder / _SCRATCH / name)
        rows.write.partitionBy(*partition_by).parquet(path)
        return self._spark.read.schema(rows.schema).parquet(escape(path))

    def _collect_parts(self, scanned: DataFrame) -> dict[int, PartFound]:
        rows = scanned.where(col("kind") == PART).select("part", "detail").collect()
        found = {row["part"]: PartFound(**json.loads(row["detail"])) for row in rows}
        return dict(sorted(found.items()))

    def _group_parts(self, found: Mapping[int, PartFound]) -> defaultdict[int, list[PartFound]]:
        """The parts with batches, by partition."""
        groups: defaultdict[int, list[PartFound]] = defaultdict(list)
        for number, part in found.items():
            if part.batches:
                groups[self._slices[number].partition].append(part)
        return groups

    def _describe_log(
        self, found: Mapping[int, PartFound]
    ) -> tuple[dict[int, int], dict[int, int]]:
        groups = self._group_parts(found)
        return (
            {partition: parts[-1].last_offset for partition, parts in groups.items()},
            {partition: sum(part.records for part in parts) for partition, parts in groups.items()},
        )

    def _check_damage(self, scanned: DataFrame, found: Mapping[int, PartFound]) -> list[str]:
        """Raise ``SourceError`` for unreadable data; return notes about what is left out."""
        rows = scanned.where(col("kind") == DAMAGE).orderBy("partition", "offset").collect()
        notes = []
        for row in rows:
            content = json.loads(row["detail"])
            line = f"partition {row['partition']}, offset {row['offset']}: {content['detail']}"
            if not self._is_torn_tail(row, content["problem"], found):
                raise SourceError(line)
            if not self._options.cuts_torn_tail:
                raise SourceError(f"{line}; use --cut-torn-tail to leave it out")
            notes.append(f"left out: {line}")
        for partition, parts in self._group_parts(found).items():
            for before, part in pairwise(parts):
                if part.first_offset <= before.last_offset:
                    raise SourceError(
                        f"partition {partition} goes back from offset {before.last_offset} to "
                        f"{part.first_offset} at the start of a segment"
                    )
        return notes

    def _is_torn_tail(self, row: Row, problem: str, found: Mapping[int, PartFound]) -> bool:
        partition = row["partition"]
        of_partition = [n for n in found if self._slices[n].partition == partition]
        last_batches = max((found[n].last_offset for n in of_partition), default=-1)
        return (
            problem == TRUNCATED
            and row["part"] == max(of_partition)
            and (row["offset"] > last_batches)
        )

    def _delete_others(self, files: Mapping[str, Sequence[str]]) -> None:
        """Delete files that earlier attempts of tasks have left."""
        wanted = {name for names in files.values() for name in names}
        for file in self._folder.glob(f"*{SUFFIX}"):
            if file.name not in wanted:
                file.unlink()


def _compute_end(parts: Sequence[PartFound]) -> int:
    return parts[-1].last_offset + 1 if parts else 0
