"""Commits the progress of a streaming query as a group's offsets, for lag monitoring.

Structured Streaming keeps its offsets in its checkpoint and commits none, so tools that monitor
group lag do not see the query. ``commit_progress`` commits, after each micro-batch, the query's
position to a Muster or Kafka cluster:

    commit_progress(spark, "orders-to-lake", group_id="orders-to-lake",
                    bootstrap_servers="broker:9092")

The query still starts from its checkpoint; only people and tools read these offsets. The group must
belong to this query alone, and have no members.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

Place = tuple[str, int]
"""Topic and partition."""

Offsets = Mapping[Place, int]
"""The query's next offset, by partition."""

Commit = Callable[[Offsets, str], None]
"""Commits offsets with some metadata durably, or raises an error."""

DEFAULT_REFRESH_S = 3_600.0
"""How often unchanged offsets are committed again, so that they do not expire."""

_RETRY_S = 1.0
_MOST_RETRY_S = 30.0
_COMMIT_TIMEOUT_MS = 20_000

_log = logging.getLogger(__name__)


def read_progress(end_offsets: Iterable[str | None]) -> dict[Place, int]:
    """The position of a query, from the end offsets of its sources: JSON of topics and partitions.

    For a partition that several sources read, the lowest offset counts. Sources without topics and
    partitions (files, rates) are ignored.
    """
    found: dict[Place, int] = {}
    for text in end_offsets:
        for place, offset in _read_source(text):
            found[place] = min(offset, found.get(place, offset))
    return found


def _read_source(text: str | None) -> list[tuple[Place, int]]:
    try:
        content = json.loads(text) if text else None
    except json.JSONDecodeError:
        return []
    if not isinstance(content, dict):
        return []
    found = []
    for topic, partitions in content.items():
        for partition, offset in partitions.items() if isinstance(partitions, dict) else ():
            is_offset = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
            if not is_offset or not partition.isdecimal():
                return []
            found.append(((str(topic), int(partition)), offset))
    return found


class CommitProgress(StreamingQueryListener):
    """Commits the progress of the queries of one name; see ``commit_progress``.

    The query never waits: a thread commits the latest progress, and retries while the group's
    coordinator does not answer.
    """

    def __init__(
        self, query_name: str, commit: Commit, *, refresh_s: float = DEFAULT_REFRESH_S
    ) -> None:
        self._query_name = query_name
        self._commit = commit
        self._refresh_s = refresh_s
        self._changed = threading.Condition()
        self._waiting: tuple[dict[Place, int], str] | None = None
        self._committed: dict[Place, int] = {}
        self._committed_s = float("-inf")
        self._is_closed = False
        self.last_error: str | None = None
        """The error of the last attempt; ``None`` if it succeeded."""
        self._thread = threading.Thread(target=self._run, name="commit-progress", daemon=True)
        self._thread.start()

    # -------------------------------------------------------------------------- Spark's callbacks

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Has no offsets."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Offer the offsets after a micro-batch."""
        progress = event.progress
        if progress.name != self._query_name:
            return
        ends = [source.endOffset for source in progress.sources]
        self.offer(read_progress(ends), f"batch {progress.batchId} of {progress.id}")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """No data arrived; progress events continue at longer intervals."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The last progress event has come before."""

    # ------------------------------------------------------------------------------- the thread

    @property
    def committed(self) -> dict[Place, int]:
        """The offsets committed last."""
        with self._changed:
            return dict(self._committed)

    def offer(self, offsets: dict[Place, int], metadata: str) -> None:
        """Request a commit unless the offsets are committed; newer offsets replace waiting ones."""
        with self._changed:
            is_fresh = time.monotonic() - self._committed_s < self._refresh_s
            if offsets and not (is_fresh and offsets == self._committed):
                self._waiting = offsets, metadata
                self._changed.notify_all()

    def close(self, timeout_s: float = 30.0) -> bool:
        """Stop, after waiting offsets are committed or the timeout; return whether all were."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._waiting is None, timeout_s)
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(timeout_s if done else 0)
        return done

    def _run(self) -> None:
        retry_s = _RETRY_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None or self._is_closed)
                if self._is_closed or self._waiting is None:
                    return
                wanted = self._waiting
            error = self._try(*wanted)
            with self._changed:
                self.last_error = error
                if error is None:
                    retry_s = _RETRY_S
                    self._committed, self._committed_s = wanted[0], time.monotonic()
                    if self._waiting is wanted:
                        self._waiting = None
                    self._changed.notify_all()
                else:
                    self._changed.wait_for(lambda: self._is_closed, retry_s)
                    retry_s = min(2 * retry_s, _MOST_RETRY_S)

    def _try(self, offsets: dict[Place, int], metadata: str) -> str | None:
        try:
            self._commit(offsets, metadata)
        # The query must go on, whatever the client raises.
        except Exception as error:  # noqa: BLE001
            _log.warning("the progress of %s was not committed: %s", self._query_name, error)
            return str(error) or type(error).__name__
        return None


def commit_progress(
    spark: SparkSession,
    query_name: str,
    *,
    group_id: str,
    bootstrap_servers: str,
    settings: Mapping[str, Any] | None = None,
    refresh_s: float = DEFAULT_REFRESH_S,
) -> CommitProgress:
    """Commit the progress of the query with ``queryName(query_name)`` from now on.

    ``settings`` are those of librdkafka, as for TLS. Requires the package confluent-kafka, on the
    driver only. To stop, call ``spark.streams.removeListener`` and ``close`` on the returned
    listener.
    """
    client = GroupOffsets(group_id, bootstrap_servers, settings or {})
    listener = CommitProgress(query_name, client.commit, refresh_s=refresh_s)
    spark.streams.addListener(listener)
    return listener


class GroupOffsets:
    """Commits offsets of a group without members."""

    def __init__(self, group_id: str, bootstrap_servers: str, settings: Mapping[str, Any]) -> None:
        from confluent_kafka import Consumer

        self._client = Consumer(
            {
                "enable.auto.commit": False,
                "socket.timeout.ms": _COMMIT_TIMEOUT_MS,
                # librdkafka itself logs to standard error that there are no listeners.
                "log_level": 2,
                **settings,
                "group.id": group_id,
                "bootstrap.servers": bootstrap_servers,
            }
        )

    def commit(self, offsets: Offsets, metadata: str) -> None:
        """See ``Commit``. Raise ``KafkaException`` if any partition is refused."""
        from confluent_kafka import KafkaException, TopicPartition

        wanted = [
            TopicPartition(topic, partition, offset, metadata)
            for (topic, partition), offset in offsets.items()
        ]
        for answer in self._client.commit(offsets=wanted, asynchronous=False) or ():
            if answer.error is not None:
                raise KafkaException(answer.error)
