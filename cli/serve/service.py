"""Assembles the server: the store, the runtime, the topics and the listeners, in order."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.serve.allocator import FreeMemory
from cli.serve.audit.audit_log import make_audit_log
from cli.serve.collector import GarbageCollector
from cli.serve.descriptors import (
    ConnectionLimits,
    TooFewDescriptors,
    compute_needed,
    compute_plan,
    describe_lowered,
    load_codecs,
    raise_limit,
)
from cli.serve.disk_reserve import DiskSpace
from cli.serve.doors.console_door import make_console_door
from cli.serve.doors.doors import Doors
from cli.serve.doors.listening import bind, bind_all, check_addresses, compute_asked
from cli.serve.figures.server_facts import FactFinder
from cli.serve.figures.snapshot import take_snapshot
from cli.serve.http import HttpServer
from cli.serve.http_protocol import HttpSettings
from cli.serve.loop_lag import LoopLag
from cli.serve.metrics.measuring import Measuring, make_lag_refresh
from cli.serve.planes.data_plane import DataPlane, Served
from cli.serve.planes.local_data_plane import LocalDataPlane
from cli.serve.process_failure import end_process
from cli.serve.store_opening import open_server_store, prepare_disk
from cli.serve.traces.traces import make_traces
from cli.settings import Address, Resolved
from cli.settings.settings_objects import compute_settings_object
from cli.settings.tables.upstream_table import BOOTSTRAP
from cli.version import compute_version, compute_versions
from coordinator.runtime.as_of.history_reads import HistoryReads, HistoryReadSettings
from coordinator.runtime.as_of.log_reads import LogReads, ReadBudget
from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.retention.backups import StoreBackups
from coordinator.runtime.runtime import Runtime
from coordinator.runtime.targets.custom_assignors import AssignorNotFound, load_assignors
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from gateway.settings import GatewaySettings
from gateway.wire_server import KafkaServer
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogPartition
from muster.assignors.registry import Assignors
from security.quotas.client_quotas import ClientQuotas
from security.quotas.settings import QuotaSettings
from storage.log_store import FormatTooNew, LogStore, StoreError
from storage.rocks.rocks_store import RocksLogStore
from storage.transfer.backup import remove_snapshot
from wording.topics import TopicSpec

log = structlog.get_logger("muster.serve")


class Service:
    """One server. Call `start`, `finish_start` and `stop` once each. Raises ``CommandError``."""

    # More than 15 attributes: the settings of each part, and each part, `None` until it is made.

    def __init__(self, resolved: Resolved, specs: Sequence[TopicSpec], *, names_topics: bool):
        """``names_topics``: the user gave a list of topics, possibly an empty one."""
        self._resolved = resolved
        # Check the settings of all parts before anything is opened.
        self._coordinator_settings = compute_settings_object(CoordinatorSettings, resolved)
        self._gateway_settings = compute_settings_object(GatewaySettings, resolved)
        self._grpc_settings = compute_settings_object(GrpcSettings, resolved)
        self._http_settings = HttpSettings(
            resolved.integer("http.connections.max"), resolved.integer("http.request.timeout.ms")
        )
        self._backlog = 0
        self.folder = DataFolder(Path(resolved.text("data.dir")))
        self.addresses: dict[str, Address] = {}
        self._audit_log = make_audit_log(resolved)
        self._audit: Audit = self._audit_log or NO_AUDIT
        self._plane = self._make_plane(specs, names_topics)
        self._traces = make_traces(resolved)
        self._quotas = ClientQuotas(compute_settings_object(QuotaSettings, resolved))
        self._doors = Doors(resolved, self._audit, self._plane.cluster)
        self._disk_space: DiskSpace | None = None
        self._store: LogStore | None = None
        self._runtime: Runtime | None = None
        self._kafka: KafkaServer | None = None
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None
        self._measuring: Measuring | None = None
        self._history: HistoryReads | None = None
        self._backups: StoreBackups | None = None
        self._garbage = GarbageCollector()
        self._lag = LoopLag(self._garbage.collect_idle)
        self._free_memory = FreeMemory()
        self._is_draining = False
        self._began_at = 0.0

    def _make_plane(self, specs: Sequence[TopicSpec], names_topics: bool) -> DataPlane:
        resolved, audit = self._resolved, self._audit
        if resolved.values[BOOTSTRAP] is None:
            return LocalDataPlane(resolved, audit, self.folder, specs, names_topics=names_topics)
        # What stands in front of a cluster takes long to import, and most servers do not.
        from cli.serve.fronting.cluster_data_plane import ClusterDataPlane

        node_id = self._gateway_settings.node_id
        return ClusterDataPlane(resolved, audit, self.folder, node_id=node_id)

    # ------------------------------------------------------------------------------- starting

    async def start(self) -> None:
        """Open the store, start loading groups, create or grow the given topics, and listen."""
        self._began_at = time.monotonic()
        if not self.folder.path.exists():
            # If a port is in use, do not leave a new folder behind.
            check_addresses(self._resolved, self._doors.listeners)
        open_files = self._share_descriptors()
        self.folder.prepare()
        self._disk_space = await asyncio.to_thread(prepare_disk, self._resolved, self.folder)
        await self._plane.open(open_files)
        self._store = open_server_store(self._resolved, self.folder.store)
        if self._audit_log is not None:
            self._audit_log.start()
        self.folder.remove_endpoints()
        self._runtime = Runtime(
            self._store,
            self._coordinator_settings,
            free_bytes=self._disk_space.free_bytes,
            authorizer=self._plane.authorizer,
            audit=self._audit,
            quotas=self._quotas.index,
            scram_credentials=self._doors.credentials,
            assignors=self._load_assignors(),
            on_failure=end_process,
            keep_evidence=self._keep_evidence,
            trips=self._traces.trips,
        )
        self._traces.start()
        self._garbage.hold()
        try:
            await self._runtime.start(await self._plane.read_topics())
        except FormatTooNew as error:
            raise CommandError(str(error), ExitCode.PRECONDITION) from error
        except StoreError as error:
            raise CommandError(str(error)) from error
        tls = self._doors.listeners[0].tls
        await self._listen(self._runtime, await self._plane.start(self._runtime, self._store, tls))
        self._lag.start()
        self._free_memory.start()
        self.folder.write_endpoints(
            {
                "pid": os.getpid(),
                "version": compute_version(),
                "cluster_id": self._runtime.cluster_id,
                **{name: str(address) for name, address in self.addresses.items()},
            }
        )

    def _keep_evidence(self, partition: LogPartition, evidence: str) -> None:
        name = f"log-partition-{partition}-{time.time_ns()}.txt"
        log.critical("evidence_kept", path=str(self.folder.write_evidence(name, evidence)))

    async def finish_start(self) -> None:
        """Wait until all groups are loaded. Groups are served as soon as each is loaded."""
        assert self._runtime is not None
        try:
            await self._runtime.loaded()
        except StoreError as error:
            raise CommandError(str(error)) from error
        await self._plane.finish_start()
        self._garbage.settle()
        if self._measuring is not None and not self._is_draining:
            self._measuring.start()
        if self._grpc is not None and not self._is_draining:
            await self._grpc.set_serving(True)
        stats = self._runtime.stats
        log.info(
            "started",
            records=stats.records_loaded,
            load_seconds=stats.load_seconds,
            start_seconds=round(time.monotonic() - self._began_at, 3),
        )

    def _share_descriptors(self) -> int:
        """Raise the limit of open files, or lower the limits of the listeners.

        Returns how many files the data plane may have open.
        """
        load_codecs()
        kafka, grpc = self._gateway_settings, self._grpc_settings
        asked = ConnectionLimits(
            kafka.max_connections, grpc.grpc_connections_max, self._http_settings.connections_max
        )
        files = self._plane.open_files
        limit = raise_limit(compute_needed(asked, files, len(self._doors.listeners)))
        try:
            plan = compute_plan(limit, asked, files, len(self._doors.listeners))
        except TooFewDescriptors as error:
            raise CommandError(str(error)) from error
        limits, files, self._backlog, accepted = plan
        lowered = describe_lowered(limit, asked, limits)
        if lowered is not None:
            log.warning("connections_lowered", cause=lowered)
        self._gateway_settings = replace(kafka, max_connections=limits.kafka)
        self._grpc_settings = replace(grpc, grpc_connections_max=limits.grpc)
        self._http_settings = replace(
            self._http_settings,
            connections_max=limits.http,
            backlog=self._backlog,
            accepted=accepted,
        )
        return files

    def _load_assignors(self) -> Assignors:
        try:
            return load_assignors(self._coordinator_settings.group_consumer_assignors)
        except AssignorNotFound as error:
            raise CommandError(str(error)) from error

    async def _listen(self, runtime: Runtime, served: Served) -> None:
        authorizer = self._plane.authorizer
        self._kafka = KafkaServer(
            served.kafka,
            authorizer,
            served.topics,
            self._gateway_settings,
            quotas=self._quotas,
            backlog=self._backlog,
            audit=self._audit,
            front=served.front,
            trips=self._traces.trips,
        )
        self._history = self._make_history(runtime)
        self._backups = self._make_backups()
        settings, audit = self._grpc_settings, self._audit
        budget = ReadBudget(settings.grpc_log_read_max_bytes_per_second)
        self._grpc = GrpcServer(
            served.grpc,
            authorizer,
            settings,
            self._history,
            self._backups,
            audit=audit,
            quotas=self._quotas,
            sessions_per_ip=self._gateway_settings.compute_address_limits(),
            tls=self._doors.grpc.tls,
            authenticate=self._doors.grpc.authenticate,
            upstream=served.upstream,
            end_offsets=served.end_offsets,
            log_reads=LogReads(self._history, self._history.store, budget),
            trips=self._traces.trips,
        )
        self._measuring = self._make_measuring(runtime, served)
        self._http = HttpServer(
            self.is_ready,
            self._measuring.scrapes.answer,
            compute_versions(),
            self._http_settings,
            self._doors.http_tls,
            console=make_console_door(
                self._resolved,
                self._doors,
                audit,
                calls=self._grpc.local_calls,
                authorizer=authorizer,
                cluster_id=runtime.cluster_id,
                find_facts=self._make_fact_finder(runtime).find,
            ),
            more=self._measuring.make_routes(),
        )
        await self._doors.start(lambda: runtime.fake_salt_secret)
        self.addresses.update(await bind_all(self._kafka, self._doors.listeners))
        for name, start in (("grpc", self._grpc.start), ("http", self._http.start)):
            asked = compute_asked(self._resolved.endpoint(f"listen.{name}"))
            port = await bind(name, asked, start(asked.host, asked.port))
            self.addresses[name] = Address(asked.host, port)
        for name, address in self.addresses.items():
            log.info("listening", listener=name, address=str(address))

    async def reload(self) -> None:
        """Read keys and certificates again; begin a log anew that was moved away."""
        if self._audit_log is not None:
            self._audit_log.reopen()
        await self._doors.certificates.reload()

    def _make_backups(self) -> StoreBackups | None:
        if not isinstance(self._store, RocksLogStore):
            return None
        remove_snapshot(self.folder.store)
        return StoreBackups(self._store, self.folder.store)

    def _make_history(self, runtime: Runtime) -> HistoryReads:
        assert self._store is not None
        asked = self._grpc_settings
        settings = HistoryReadSettings(
            asked.grpc_history_readers_max,
            asked.grpc_history_timeout_ms,
            asked.grpc_history_reader_bytes,
        )
        return HistoryReads(self.folder.store, self._store, runtime, settings)

    # ------------------------------------------------------------------------------- stopping

    async def stop(self) -> None:
        """Drain clients, flush and close. Skips parts that were never started."""
        self._is_draining = True
        grace_s = self._resolved.integer("shutdown.timeout.ms") / 1000
        ends_at = time.monotonic() + grace_s
        await self._doors.stop()
        if self._grpc is not None:
            await self._grpc.set_serving(False)
        async with asyncio.TaskGroup() as stopping:
            if self._kafka is not None:
                stopping.create_task(self._kafka.stop(grace_s))
            if self._grpc is not None:
                stopping.create_task(self._grpc.stop(grace_s))
        self._doors.grpc.stop()
        if self._measuring is not None:
            await self._measuring.stop()
        if self._history is not None:
            await self._history.stop()
        await self._plane.stop_serving()
        if self._runtime is not None:
            await self._runtime.stop()
        await self._plane.stop()
        if self._backups is not None:
            await self._backups.wait()
        if self._store is not None:
            self._store.close()
            self.folder.remove_endpoints()
        self._lag.stop()
        self._garbage.stop()
        self._free_memory.stop()
        if self._http is not None:
            await self._http.stop()
        if self._audit_log is not None:
            await asyncio.to_thread(self._audit_log.close)
        # Last, as a collector may hang: nobody waits for it but the end of the process.
        await asyncio.to_thread(self._traces.stop, ends_at)

    def is_ready(self) -> bool:
        """Whether the server serves commands and is not stopping."""
        return not self._is_draining and self._runtime is not None and self._runtime.ready()

    def _make_fact_finder(self, runtime: Runtime) -> FactFinder:
        assert self._kafka is not None
        assert self._grpc is not None
        return FactFinder(
            self._resolved,
            self.folder,
            runtime,
            self._doors,
            kafka=self._kafka,
            grpc=self._grpc,
            audit=self._audit_log,
            times={"loop": self._lag.histogram, "collections": self._garbage.pauses},
            addresses=self.addresses,
        )

    def _make_measuring(self, runtime: Runtime, served: Served) -> Measuring:
        assert self._store is not None
        assert self._kafka is not None
        assert self._grpc is not None
        kafka, grpc = self._kafka, self._grpc
        times = grpc.end_offset_times
        return Measuring(
            self._resolved,
            self.folder,
            runtime,
            take=lambda: take_snapshot(
                runtime,
                loop_lag=self._lag.histogram,
                collections=self._garbage.pauses,
                kafka=kafka,
                grpc=grpc,
                audit=self._audit_log,
                throttled_s=self._quotas.throttled_s,
                certificates_not_after=self._doors.certificates.compute_not_after(),
                is_ready=self.is_ready(),
                upstream=self._plane.compute_figures(),
                traces=self._traces.compute_figures(),
            ),
            lag=make_lag_refresh(
                self._resolved,
                runtime,
                self._store,
                replace(served, end_offsets=grpc.known_ends),
                times,
            ),
        )
