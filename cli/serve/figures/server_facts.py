"""The facts of the server that its console shows."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Mapping
from typing import Final

from cli.data_folder import DataFolder
from cli.serve.doors.doors import Doors
from cli.serve.figures.snapshot import AuditFigures, GrpcFigures, KafkaFigures
from cli.serve.metrics.scrapes import compute_folder_bytes
from cli.settings import Address, Resolved
from console.facts import Counts, Disk, Listener, LogPartition, ServerFacts, Times
from coordinator.runtime.loop.stats import Histogram
from coordinator.runtime.runtime import Runtime

FOLDERS_KEPT_S: Final = 30.0
"""The sizes of folders are not looked at more often: there may be many files."""


class FactFinder:
    """Puts the facts together when somebody asks for them."""

    def __init__(
        self,
        resolved: Resolved,
        folder: DataFolder,
        runtime: Runtime,
        doors: Doors,
        *,
        kafka: KafkaFigures,
        grpc: GrpcFigures,
        audit: AuditFigures | None,
        times: Mapping[str, Histogram],
        addresses: Mapping[str, Address],
    ) -> None:
        """``times`` are those of the event loop (``loop``, ``collections``)."""
        self._resolved = resolved
        self._folder = folder
        self._runtime = runtime
        self._doors = doors
        self._kafka = kafka
        self._grpc = grpc
        self._audit = audit
        self._times = times
        self._addresses = addresses
        self._started_ms = time.time_ns() // 1_000_000
        self._sizes: tuple[int, int] = (0, 0)
        self._sized_s: float | None = None

    async def find(self) -> ServerFacts:
        """The server now."""
        runtime, stats = self._runtime, self._runtime.stats
        await self._look_at_folders()
        return ServerFacts(
            cluster_id=runtime.cluster_id,
            node_id=self._resolved.integer("node.id"),
            process_id=os.getpid(),
            started_ms=self._started_ms,
            is_ready=runtime.ready(),
            listeners=self._find_listeners(),
            log_partitions=self._find_log_partitions(),
            counts=self._count(),
            disk=await asyncio.to_thread(self._compute_disk),
            flushes=_copy(stats.flush_seconds),
            writes=_copy(stats.write_seconds),
            loop=_copy(self._times["loop"]),
            collections=_copy(self._times["collections"]),
            certificates=self._doors.certificates.compute_not_after(),
        )

    def _find_listeners(self) -> list[Listener]:
        protocols = {"kafka": self._doors.listeners[0].endpoint.protocol}
        protocols |= {each.endpoint.name: each.endpoint.protocol for each in self._doors.listeners}
        for name in ("grpc", "http"):
            protocols[name] = self._resolved.endpoint(f"listen.{name}").protocol
        return [
            Listener(name, protocols[name].value, str(address))
            for name, address in self._addresses.items()
        ]

    def _find_log_partitions(self) -> list[LogPartition]:
        left = set(self._runtime.partitions_loading)
        return [
            LogPartition(
                shard.partition,
                len(shard.consumer_groups) + len(shard.classic_groups) + len(shard.offset_groups),
                shard.partition not in left,
                shard.soft.is_stopped,
            )
            for shard in self._runtime.shards
        ]

    def _count(self) -> Counts:
        runtime, stats = self._runtime, self._runtime.stats
        left_out = {} if self._audit is None else self._audit.left_out()
        return Counts(
            topics=len(runtime.image.by_name),
            topic_partitions=sum(each.partitions for each in runtime.image.by_name.values()),
            kafka_connections=self._kafka.connections,
            grpc_sessions=self._grpc.sessions,
            waiting_members=runtime.waiting_members,
            unsettled_keys=stats.unsettled_keys,
            writes_refused=stats.writes_refused,
            invariant_violations=sum(stats.invariant_violations.values()),
            history_partitions_left=stats.history_partitions_left,
            stalled_ms=stats.stalled_ms,
            audit_lines_left_out=sum(left_out.values()),
        )

    def _compute_disk(self) -> Disk:
        stats, resolved = self._runtime.stats, self._resolved
        store_bytes, topics_bytes = self._sizes
        return Disk(
            store_bytes,
            topics_bytes,
            shutil.disk_usage(self._folder.path).free,
            resolved.integer("log.min.free.bytes"),
            stats.history_bytes,
            resolved.integer("log.history.bytes"),
            stats.history_age_ms,
            resolved.integer("log.history.ms"),
        )

    async def _look_at_folders(self) -> None:
        now_s = time.monotonic()
        if self._sized_s is not None and now_s - self._sized_s < FOLDERS_KEPT_S:
            return
        # Before the look: who asks meanwhile takes the sizes of before.
        self._sized_s = now_s
        self._sizes = (
            await asyncio.to_thread(compute_folder_bytes, self._folder.store),
            await asyncio.to_thread(compute_folder_bytes, self._folder.topics),
        )


def _copy(histogram: Histogram) -> Times:
    return Times(histogram.bounds_s, tuple(histogram.counts), histogram.sum_s)
