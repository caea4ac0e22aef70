"""A streaming query without Spark: makes Spark's calls to a reader, with a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pipeline.schema import RECORDS, TOPIC
from pipeline.source.options import parse_options
from pipeline.source.stream_reader import GroupLogStreamReader

Row = dict[str, Any]


class Stream:
    """A query over a folder that does what Spark does: offsets as JSON, in its checkpoint."""

    def __init__(self, folder: Path, **options: str) -> None:
        self._options = {"path": str(folder), "decode": "records", **options}
        self.reader: Any = None
        self.start()
        self.offset = self.reader.initialOffset()

    def start(self) -> None:
        """Restart: only the checkpoint is left."""
        if self.reader is not None:
            self.reader.stop()
        parsed = parse_options({"startingOffsets": "earliest", **self._options})
        self.reader = GroupLogStreamReader(parsed, RECORDS)

    def plan(self, most: int | None) -> Any:
        limit = ReadAllAvailable() if most is None else ReadMaxRows(most)
        return json.loads(json.dumps(self.reader.latestOffset(self.offset, limit)))

    def read(self, end: Any) -> list[Row]:
        rows = [
            row
            for task in self.reader.partitions(self.offset, end)
            for batch in self.reader.read(task)
            for row in batch.to_pylist()
        ]
        self.offset = end
        return rows

    def step(self, most: int | None = None) -> list[Row]:
        end = self.plan(most)
        return [] if end == self.offset else self.read(end)

    @property
    def position(self) -> int:
        return int(self.offset[TOPIC]["0"])
