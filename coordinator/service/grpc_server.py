"""The gRPC server: services, health and reflection on one port."""

from __future__ import annotations

import asyncio
from functools import partial

import grpc.aio
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from coordinator.runtime.api import Coordinator
from coordinator.runtime.as_of.history_reads import HistoryReads
from coordinator.runtime.as_of.log_reads import LogReads
from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.clock import SystemClock
from coordinator.runtime.loop.machine import compute_answers_max, read_memory_bytes
from coordinator.runtime.loop.stats import Histograms
from coordinator.runtime.members.member_rights import make_member_rights
from coordinator.runtime.retention.backups import Backups
from coordinator.runtime.trips.trips import Trips
from coordinator.service.admin.access.access_service import AccessService
from coordinator.service.admin.access.quota_service import QuotaService
from coordinator.service.admin.access.user_service import UserService
from coordinator.service.admin.admin_service import AdminService
from coordinator.service.admin.backup_service import BackupService
from coordinator.service.admin.freeze_service import FreezeService
from coordinator.service.admin.group_descriptions import make_describe
from coordinator.service.admin.past.explain_service import ExplainService
from coordinator.service.admin.past.history_service import HistoryService
from coordinator.service.admin.past.log_service import LogService
from coordinator.service.admin.past.record_service import RecordService
from coordinator.service.admin.resets.reset_service import ResetService
from coordinator.service.admin.upstream.upstream_administration import UpstreamAdministration
from coordinator.service.admin.upstream.upstream_service import UpstreamService
from coordinator.service.admin.what_if_service import WhatIfService
from coordinator.service.calls.access import Access
from coordinator.service.calls.handlers import CallsInFlight, make_foreign_handler, make_handler
from coordinator.service.calls.local_calls import LocalCalls
from coordinator.service.calls.services import Services
from coordinator.service.calls.throttle import Throttle
from coordinator.service.calls.traced_handlers import make_traced_method
from coordinator.service.calls.waits import Waits
from coordinator.service.classic.classic_service import ClassicService
from coordinator.service.credentials.authentication import Authenticate
from coordinator.service.credentials.server_tls import ServerTls
from coordinator.service.ends.end_offset_times import EndOffsetTimes
from coordinator.service.ends.end_offsets import EndOffsets
from coordinator.service.ends.end_reports import EndReports, ReportLimits
from coordinator.service.ends.known_ends import KnownEnds
from coordinator.service.session.group_service import GroupService
from coordinator.service.session.ownership_service import OwnershipService
from coordinator.service.settings import GrpcSettings, compute_server_options
from coordinator.service.streams.backlog import Backlog
from coordinator.service.streams.pinger import Pinger
from coordinator.service.streams.session_turns import Turns
from coordinator.service.streams.sessions import SessionRegistry
from coordinator.service.watch.watched_groups import WatchedGroups
from coordinator.service.wire.limits import compute_limits
from model.caller import INTERNAL
from model.configs.coordinator_settings import CoordinatorSettings
from muster.v1 import (
    access_pb2,
    admin_pb2,
    backup_pb2,
    classic_pb2,
    explain_pb2,
    freeze_pb2,
    group_pb2,
    history_pb2,
    log_pb2,
    ownership_pb2,
    quota_pb2,
    record_pb2,
    reset_pb2,
    upstream_pb2,
    user_pb2,
    what_if_pb2,
)
from security.quotas.address_limits import NO_LIMIT, AddressLimits
from security.quotas.client_quotas import ClientQuotas

_GROUP_SERVICE = group_pb2.DESCRIPTOR.services_by_name["GroupService"]
_CLASSIC_SERVICE = classic_pb2.DESCRIPTOR.services_by_name["ClassicService"]
_ADMIN_SERVICE = admin_pb2.DESCRIPTOR.services_by_name["AdminService"]
_BACKUP_SERVICE = backup_pb2.DESCRIPTOR.services_by_name["BackupService"]
_ACCESS_SERVICE = access_pb2.DESCRIPTOR.services_by_name["AccessService"]
_QUOTA_SERVICE = quota_pb2.DESCRIPTOR.services_by_name["QuotaService"]
_RESET_SERVICE = reset_pb2.DESCRIPTOR.services_by_name["ResetService"]
_UPSTREAM_SERVICE = upstream_pb2.DESCRIPTOR.services_by_name["UpstreamService"]
_OWNERSHIP_SERVICE = ownership_pb2.DESCRIPTOR.services_by_name["OwnershipService"]
_USER_SERVICE = user_pb2.DESCRIPTOR.services_by_name["UserService"]
_WHAT_IF_SERVICE = what_if_pb2.DESCRIPTOR.services_by_name["WhatIfService"]
_EXPLAIN_SERVICE = explain_pb2.DESCRIPTOR.services_by_name["ExplainService"]
_HISTORY_SERVICE = history_pb2.DESCRIPTOR.services_by_name["HistoryService"]
_FREEZE_SERVICE = freeze_pb2.DESCRIPTOR.services_by_name["FreezeService"]
_LOG_SERVICE = log_pb2.DESCRIPTOR.services_by_name["LogService"]
_RECORD_SERVICE = record_pb2.DESCRIPTOR.services_by_name["RecordService"]
_HEALTH_SERVICE = health_pb2.DESCRIPTOR.services_by_name["Health"]
_REFLECTION_SERVICE = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"]
_LISTENERS_GRACE_S = 0.1
SERVICES = (
    _GROUP_SERVICE.full_name,
    _CLASSIC_SERVICE.full_name,
    _OWNERSHIP_SERVICE.full_name,
    _ADMIN_SERVICE.full_name,
    _BACKUP_SERVICE.full_name,
    _ACCESS_SERVICE.full_name,
    _QUOTA_SERVICE.full_name,
    _RESET_SERVICE.full_name,
    _WHAT_IF_SERVICE.full_name,
    _EXPLAIN_SERVICE.full_name,
    _HISTORY_SERVICE.full_name,
    _FREEZE_SERVICE.full_name,
    _LOG_SERVICE.full_name,
    _RECORD_SERVICE.full_name,
    _USER_SERVICE.full_name,
    _UPSTREAM_SERVICE.full_name,
)


def compute_ping_interval_ms(coordinator: CoordinatorSettings, grpc: GrpcSettings) -> int:
    """The silence (ms) after which a session is sent a Ping.

    It is at most a third of the shortest session timeout that a group can have: group configs may
    lower the timeout down to the permitted minimum. By default it is a sixth of that, or the
    heartbeat interval if longer. Pings need not be more frequent to detect dead connections, which
    HTTP/2 keepalive does, and they are the only cost of an idle stream.
    """
    least_ms = min(
        coordinator.group_consumer_min_session_timeout_ms,
        coordinator.group_consumer_session_timeout_ms,
    )
    wanted_ms = grpc.grpc_ping_interval_ms or max(
        coordinator.group_consumer_heartbeat_interval_ms, least_ms // 6
    )
    return min(wanted_ms, max(least_ms // 3, 1))


def _make_known_ends(
    coordinator: Coordinator, settings: GrpcSettings, truth: EndOffsets | None, is_fronted: bool
) -> KnownEnds:
    """A cluster is asked for the ends of its topics, so no reports are taken in front of one."""
    limits = ReportLimits(settings.grpc_end_reports_max, settings.grpc_end_reports_max_age_ms)
    return KnownEnds(
        truth,
        None if is_fronted else EndReports(limits),
        image=lambda: coordinator.image,
        now_ms=SystemClock().monotonic_ms,
    )


def _make_services_of_operators(services: Services) -> tuple[tuple[ServiceDescriptor, object], ...]:
    return (
        (_ADMIN_SERVICE, AdminService(services)),
        (_ACCESS_SERVICE, AccessService(services)),
        (_QUOTA_SERVICE, QuotaService(services)),
        (_USER_SERVICE, UserService(services)),
        (_RESET_SERVICE, ResetService(services)),
        (_WHAT_IF_SERVICE, WhatIfService(services)),
        (_EXPLAIN_SERVICE, ExplainService(services)),
        (_HISTORY_SERVICE, HistoryService(services)),
        (_FREEZE_SERVICE, FreezeService(services)),
        (_RECORD_SERVICE, RecordService(services)),
    )


def _make_watched_groups(
    coordinator: Coordinator, settings: GrpcSettings, ping_interval_ms: int
) -> WatchedGroups:
    describe = partial(make_describe, coordinator, INTERNAL)
    return WatchedGroups(coordinator, describe, settings.grpc_watches_max, ping_interval_ms)


class GrpcServer:
    """Serves a coordinator over gRPC. Must be created on the event loop that it serves on."""

    def __init__(
        self,
        coordinator: Coordinator,
        authorizer: Authorizer,
        settings: GrpcSettings,
        history: HistoryReads | None = None,
        backups: Backups | None = None,
        *,
        quotas: ClientQuotas | None = None,
        sessions_per_ip: AddressLimits = NO_LIMIT,
        audit: Audit = NO_AUDIT,
        tls: ServerTls | None = None,
        authenticate: Authenticate | None = None,
        upstream: UpstreamAdministration | None = None,
        end_offsets: EndOffsets | None = None,
        log_reads: LogReads | None = None,
        trips: Trips | None = None,
    ) -> None:
        """``sessions_per_ip``: gRPC tells nobody of connections, so sessions are counted.

        Without ``authenticate`` all clients are ``User:ANONYMOUS``. ``upstream`` is ``None`` unless
        the server stands in front of a cluster. Without ``end_offsets`` none are known, without
        ``log_reads`` the log cannot be read. ``trips`` follows calls, if any are traced.
        """
        self._coordinator, self._tls = coordinator, tls
        self._waits = Waits()
        ping_interval_ms = compute_ping_interval_ms(coordinator.settings, settings)
        answers_max = compute_answers_max(settings.grpc_stream_total_bytes, read_memory_bytes())
        throttle = Throttle(coordinator, quotas, sessions_per_ip)
        self._watched = _make_watched_groups(coordinator, settings, ping_interval_ms)
        services = Services(
            coordinator,
            Access(authorizer),
            compute_limits(coordinator.settings, settings),
            settings,
            SessionRegistry(),
            Pinger(ping_interval_ms / 1000),
            ping_interval_ms,
            Turns(),
            Backlog(answers_max, asyncio.get_running_loop().call_soon),
            throttle,
            self._watched,
            history,
            rights=make_member_rights(coordinator, authorizer),
            known_ends=_make_known_ends(coordinator, settings, end_offsets, upstream is not None),
        )
        self._log_service = LogService(services, log_reads)
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # set at import
        self._server = grpc.aio.server(options=compute_server_options(settings))
        self._calls = CallsInFlight()
        self._services = services
        served: tuple[tuple[ServiceDescriptor, object], ...] = (
            (_GROUP_SERVICE, GroupService(services)),
            (_CLASSIC_SERVICE, ClassicService(services, self._waits)),
            (_OWNERSHIP_SERVICE, OwnershipService(services)),
            *_make_services_of_operators(services),
            (_LOG_SERVICE, self._log_service),
            (_UPSTREAM_SERVICE, UpstreamService(services, upstream, audit)),
            (_BACKUP_SERVICE, BackupService(services.access, backups, audit)),
        )
        self.local_calls = LocalCalls(
            {service.name: (service, servicer) for service, servicer in served},
            throttle,
            self._calls,
        )
        """The same services for callers within this process."""
        self._add_handlers(served, authenticate, trips)

    def _add_handlers(
        self,
        served: tuple[tuple[ServiceDescriptor, object], ...],
        authenticate: Authenticate | None,
        trips: Trips | None,
    ) -> None:
        asked = (self._calls, self._services.throttle, self._services.times, authenticate)
        make = None if trips is None else partial(make_traced_method, trips)
        handlers = tuple(
            make_handler(service, servicer, *asked, make=make) for service, servicer in served
        )
        self._server.add_generic_rpc_handlers(handlers)
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflector = reflection.aio.ReflectionServicer(names)  # type: ignore[attr-defined]  # ditto
        self._server.add_generic_rpc_handlers(
            (
                # Who looks after a server without being a client of it needs no credentials.
                make_foreign_handler(_HEALTH_SERVICE, self._health),
                make_foreign_handler(_REFLECTION_SERVICE, reflector, authenticate),
            )
        )

    @property
    def sessions(self) -> int:
        """How many session streams are open."""
        return len(self._services.sessions)

    @property
    def call_seconds(self) -> Histograms:
        """How long calls took, and commits on sessions, by name."""
        return self._services.times

    @property
    def known_ends(self) -> EndOffsets:
        """Where partitions end, with what clients report."""
        assert self._services.known_ends is not None
        return self._services.known_ends

    @property
    def end_offset_times(self) -> EndOffsetTimes:
        """When partitions ended where, as far as anybody has looked."""
        return self._services.end_offset_times

    async def start(self, host: str, port: int) -> int:
        """Start listening, on a free port if ``port`` is 0, and return the bound port.

        Raises ``OSError`` if the server cannot listen there.
        """
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, self._tls.make_credentials())
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: is the port in use?") from error
        await self.set_serving(self._coordinator.ready())
        await self._server.start()
        return bound

    async def set_serving(self, is_serving: bool) -> None:
        """Set the status that the health service reports, overall and for each service."""
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if is_serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in ("", *SERVICES):
            await self._health.set(name, status)

    async def wait_for_calls(self) -> None:
        """Return when all calls that have begun are answered, or given up by their clients."""
        await self._calls.wait_until_none()

    async def stop(self, grace_s: float) -> None:
        """Report NOT_SERVING, refuse new calls, notify sessions, and answer calls in flight.

        Calls that are left after ``grace_s`` are cancelled. The coordinator must still be running.
        """
        await self._health.enter_graceful_shutdown()
        self.local_calls.stop()
        ending = asyncio.create_task(self._server.stop(grace_s))
        # Let it run, so that new calls are refused before clients are told to reconnect elsewhere.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(grace_s):
                self._services.sessions.stop()
                self._watched.stop()
                self._waits.stop()
                self._log_service.stop()
                await self.wait_for_calls()
        except TimeoutError:
            pass
        await asyncio.wait((ending,), timeout=_LISTENERS_GRACE_S)
        # Only listening streams are left now: health watchers and reflection.
        await self._server.stop(None)
        await ending
