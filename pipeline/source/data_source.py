"""``format("grouplog")`` for Spark: register ``GroupLogDataSource``, as ``pipeline.session`` does.

spark.read.format("grouplog").load("/var/lib/muster")
spark.readStream.format("grouplog").option("decode", "records").load("offsets-segments/")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pipeline.schema import RAW, RAW_WITH_HEADERS, RECORDS
from pipeline.source.errors import OptionError
from pipeline.source.filters import PushedFilters
from pipeline.source.logs.group_log import LogTask
from pipeline.source.offset_ranges import compute_batch_bounds
from pipeline.source.one_line import told_in_one_line
from pipeline.source.options import Decode, LogOptions, parse_options
from pipeline.source.slice_reading import open_log, read_slices
from pipeline.source.stream_reader import GroupLogStreamReader

NAME = "grouplog"


class GroupLogDataSource(DataSource):
    """A store, a folder of segments or one segment; options are those of Spark's Kafka source.

    A user schema may name a subset of the columns: others are not decoded.
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return NAME

    @told_in_one_line
    def schema(self) -> StructType:
        """The schema of the Kafka source, or of ``schema.RECORDS`` with ``decode=records``."""
        return from_arrow_schema(compute_schema(parse_options(self.options)))

    @told_in_one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader for batch queries."""
        options = parse_options(self.options)
        return GroupLogReader(options, compute_columns(options, schema))

    @told_in_one_line
    def streamReader(self, schema: StructType) -> GroupLogStreamReader:  # noqa: N802
        """The reader for streaming queries."""
        options = parse_options(self.options)
        return GroupLogStreamReader(options, compute_columns(options, schema))


def compute_schema(options: LogOptions) -> pa.Schema:
    """All columns available with these options."""
    if options.decode is Decode.RECORDS:
        return RECORDS
    return RAW_WITH_HEADERS if options.include_headers else RAW


def compute_columns(options: LogOptions, wanted: StructType) -> pa.Schema:
    """The requested columns as an Arrow schema. Raise ``OptionError`` for unknown ones."""
    schema: pa.Schema = to_arrow_schema(wanted, timezone="UTC")
    known = to_arrow_schema(from_arrow_schema(compute_schema(options)), timezone="UTC")
    for field in schema:
        if field.name not in known.names:
            raise OptionError(f"column {field.name} is unknown: there are {', '.join(known.names)}")
        if field.type != known.field(field.name).type:
            raise OptionError(f"column {field.name} is {known.field(field.name).type}")
    return schema


class GroupLogReader(DataSourceReader):
    """Reader for batch queries, with pushdown of filters on partition, offset and timestamp."""

    def __init__(self, options: LogOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._pushed = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Accept filters; return those that Spark must still apply."""
        return [condition for condition in filters if not self._pushed.add(condition)]

    @told_in_one_line
    def partitions(self) -> Sequence[InputPartition]:
        """Tasks of some MiB of the log each; at least one."""
        log = open_log(self._options.path)
        try:
            bounds = compute_batch_bounds(log, self._options, self._pushed)
            tasks = log.plan(bounds, self._options.min_partitions)
        finally:
            log.close()
        return [LogTask(slices) for slices in tasks] or [LogTask(())]

    @told_in_one_line
    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        yield from read_slices(partition.slices, self._options, self._schema)
