"""Topics and records of a cluster: the parts of a server in front of it, put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.serve.figures.upstream_figures import UpstreamFigures, compute_upstream_figures
from cli.serve.fronting.cluster_access import check_same_cluster, compute_cluster_settings
from cli.serve.fronting.upstream_settings import UpstreamSettings, compute_upstream_settings
from cli.serve.planes.data_plane import Served
from cli.settings import Resolved
from coordinator.runtime.audit import Audit
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.runtime import Runtime
from gateway.rewriting.api_versions import OWN_OFFERS
from gateway.rewriting.naming import OwnNode
from model.caller import INTERNAL
from model.commands.topics import ReplaceTopics
from model.errors import GroupError
from model.ids import TopicName
from model.topics import Topic
from security.tls.server_contexts import TlsContexts
from storage.log_store import LogStore
from upstream.administration.administration import Administration, AdministrationSettings
from upstream.cluster.cluster import ClusterUnreachable
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.start_checks import UpstreamFault
from upstream.front.cluster_front import NODE_ID_BASE, ClusterFront
from upstream.front.late_relays import LateRelays
from upstream.fronted.fronted_coordinator import FrontedCoordinator
from upstream.fronted.group_deletions import GroupDeletions
from upstream.offsets.cluster_offsets import ClusterOffsets
from upstream.offsets.offset_copies import OffsetCopies
from upstream.offsets.offsets import Offsets
from upstream.offsets.own_offsets import OwnOffsets
from upstream.relay.relay_settings import RelaySettings
from upstream.relay.relays import RelayFault, Relays
from upstream.rights.acl_mirror import AclMirror
from upstream.rights.mirrored_authorizer import MirroredAuthorizer
from upstream.sentinel.sentinel_sign import SentinelSign
from upstream.statistics import UpstreamStatistics
from upstream.takeover.machine.move import MoveRules
from upstream.takeover.offset_moves import StoredOffsets
from upstream.takeover.takeovers import Takeovers, compute_monotonic_ms
from upstream.topics.cluster_catalogue import ClusterCatalogue
from upstream.topics.cluster_end_offsets import ClusterEndOffsets
from upstream.topics.cluster_topics import ClusterTopics, read_all_topics
from upstream.topics.read_topics import TopicChanges

log = structlog.get_logger("muster.serve")

ACLS_WAIT_S = 15.0
"""How long the start waits for the ACLs of the cluster."""
_SESSION_TIMEOUTS_MS = (300_000, 45_000)
CONNECTIONS_EACH = 2
"""A relayed connection is one to the client and one to the broker."""
CONNECTIONS_MAX = 10_000
CONNECTIONS_LEAST = 16
"""Clients of one relay."""


@dataclass(frozen=True, slots=True)
class _Moves:
    """What moves groups, once there is a runtime."""

    runtime: Runtime
    topics: ClusterTopics
    end_offsets: ClusterEndOffsets
    relays: Relays
    takeovers: Takeovers
    offsets: Offsets
    deletions: GroupDeletions


class ClusterDataPlane:
    """``cli.serve.planes.data_plane.DataPlane`` of a server in front of a cluster."""

    def __init__(
        self, resolved: Resolved, audit: Audit, folder: DataFolder, *, node_id: int
    ) -> None:
        """Raises ``CommandError`` for an identity of Muster that cannot be used."""
        self.settings: UpstreamSettings = compute_upstream_settings(
            resolved, compute_cluster_settings(resolved)
        )
        self.cluster = ClusterClient(self.settings.cluster)
        self._folder = folder
        self._node_id = node_id
        self._statistics = UpstreamStatistics()
        self._authorizer = MirroredAuthorizer(audit)
        self._mirror = AclMirror(
            self.cluster, self._authorizer, self.settings.acls, self._statistics
        )
        self._connections_max = CONNECTIONS_MAX
        self._moves: _Moves | None = None
        self._topics_took_s = 0.0

    @property
    def authorizer(self) -> Authorizer:
        return self._authorizer

    @property
    def open_files(self) -> int:
        return CONNECTIONS_EACH * CONNECTIONS_MAX * len(self.settings.ports)

    async def open(self, open_files: int) -> None:
        """Find the cluster, check that it is that of the folder, and read its ACLs."""
        relays = CONNECTIONS_EACH * len(self.settings.ports)
        self._connections_max = max(open_files // relays, CONNECTIONS_LEAST)
        try:
            await self.cluster.start()
        except UpstreamFault as fault:
            raise CommandError(str(fault), ExitCode.PRECONDITION) from None
        check_same_cluster(self._folder, self.cluster.cluster_id)
        self._mirror.start()
        try:
            async with asyncio.timeout(ACLS_WAIT_S):
                await self._mirror.wait_until_read()
        except TimeoutError:
            cause = self._mirror.fault or "the cluster does not show its ACLs"
            raise CommandError(cause, ExitCode.PRECONDITION) from None
        self._tell_of_cluster()

    def _tell_of_cluster(self) -> None:
        cluster = self.cluster
        log.info("upstream_found", cluster_id=cluster.cluster_id, brokers=len(cluster.brokers))
        if cluster.has_consumer_protocol:
            log.warning(
                "upstream_has_consumer_protocol",
                cause="the cluster has the consumer protocol itself: Muster works, and is not "
                "needed for it",
            )
        elif not cluster.offers_consumer_protocol:
            log.warning(
                "upstream_without_consumer_protocol",
                cause="its brokers are older than Kafka 3.1, without topic ids in Metadata: groups "
                "that are taken over stay classic",
            )

    async def read_topics(self) -> Sequence[Topic]:
        """All topics of the cluster: without them each group would lose its partitions at first."""
        began = time.monotonic()
        try:
            topics = await read_all_topics(self.cluster)
        except ClusterUnreachable as error:
            raise CommandError(f"the cluster's topics could not be read: {error}") from None
        self._topics_took_s = time.monotonic() - began
        return topics

    async def start(self, runtime: Runtime, store: LogStore, tls: TlsContexts | None) -> Served:
        moves = self._moves = self._make_moves(runtime, store, tls)
        moves.topics.start(self._topics_took_s)
        try:
            await moves.relays.start()
        except RelayFault as fault:
            raise CommandError(str(fault), ExitCode.PRECONDITION) from None
        kafka, grpc = (
            FrontedCoordinator(
                runtime, moves.offsets, moves.takeovers, moves.deletions, for_grpc=for_grpc
            )
            for for_grpc in (False, True)
        )
        stored = StoredOffsets(moves.offsets, self._make_copies(moves))
        moves.takeovers.attach(kafka.submit, stored)
        return Served(
            ClusterCatalogue(lambda: runtime.image),
            kafka,
            grpc,
            moves.end_offsets,
            self._make_front(moves),
            self._make_administration(moves),
            has_offsets=self.settings.keeps_offsets,
        )

    def _make_moves(self, runtime: Runtime, store: LogStore, tls: TlsContexts | None) -> _Moves:
        late = LateRelays()
        takeovers = self._make_takeovers(runtime, store, late)
        offsets = self._make_offsets(runtime, takeovers)
        relays = late.relays = Relays(
            self.cluster, takeovers, self._compute_relay_settings(tls), self._statistics
        )
        return _Moves(
            runtime,
            ClusterTopics(
                self.cluster,
                image=lambda: runtime.image,
                publish=self._publish_topics,
                find_subscribed=lambda: _find_subscribed(runtime),
                interval_ms=self.settings.metadata_interval_ms,
            ),
            ClusterEndOffsets(self.cluster, timeout_ms=self.settings.cluster.request_timeout_ms),
            relays,
            takeovers,
            offsets,
            GroupDeletions(
                runtime,
                self.cluster,
                takeovers,
                offsets,
                timeout_ms=self.settings.cluster.request_timeout_ms,
            ),
        )

    def _make_takeovers(self, runtime: Runtime, store: LogStore, relays: LateRelays) -> Takeovers:
        settings, own = self.settings, self.settings.own
        return Takeovers(
            self.cluster,
            runtime,
            relays,
            SentinelSign(store.cluster_id, own.host, own.port),
            rules=MoveRules(
                uuid=store.cluster_id,
                principal=settings.acls.principal,
                session_timeouts_ms=_compute_session_timeouts_ms(settings.session_timeout_ms),
            ),
            pattern=settings.pattern,
            others=settings.others,
            statistics=self._statistics,
        )

    def _make_copies(self, moves: _Moves) -> OffsetCopies:
        return OffsetCopies(
            moves.runtime,
            self.cluster,
            moves.takeovers,
            moves.offsets,
            now_ms=compute_monotonic_ms,
            timeout_ms=self.settings.cluster.request_timeout_ms,
        )

    def _make_offsets(self, runtime: Runtime, takeovers: Takeovers) -> Offsets:
        if self.settings.keeps_offsets:
            return OwnOffsets(runtime)
        return ClusterOffsets(
            runtime,
            self.cluster,
            takeovers,
            now_ms=compute_monotonic_ms,
            timeout_ms=self.settings.cluster.request_timeout_ms,
            statistics=self._statistics,
        )

    def _compute_relay_settings(self, tls: TlsContexts | None) -> RelaySettings:
        settings, own = self.settings, self.settings.own
        return RelaySettings(
            own=OwnNode(NODE_ID_BASE + self._node_id, own.host, own.port),
            ports=settings.ports,
            bind_host=settings.listener.host,
            tls=tls,
            added=OWN_OFFERS if self.cluster.offers_consumer_protocol else {},
            connections_max=self._connections_max,
        )

    def _make_front(self, moves: _Moves) -> ClusterFront:
        return ClusterFront(
            self.cluster,
            moves.takeovers,
            node_id=self._node_id,
            address_of=moves.relays.address_of,
            passes_anonymous=self.settings.passes_anonymous,
            statistics=self._statistics,
        )

    def _make_administration(self, moves: _Moves) -> Administration:
        settings = self.settings
        return Administration(
            moves.runtime,
            self.cluster,
            moves.relays,
            moves.takeovers,
            moves.runtime.find_places,
            AdministrationSettings(
                settings.acls.principal,
                "muster" if settings.keeps_offsets else "upstream",
                str(settings.own),
                "" if settings.pattern is None else str(settings.pattern.pattern),
            ),
        )

    async def _publish_topics(self, changes: TopicChanges) -> None:
        assert self._moves is not None
        try:
            await self._moves.runtime.call(ReplaceTopics(INTERNAL, changes.changed, changes.gone))
        except GroupError as error:
            log.warning("topics_not_replaced", cause=error.message)

    def compute_figures(self) -> UpstreamFigures | None:
        if self._moves is None:
            return None
        return compute_upstream_figures(
            self._statistics,
            is_reachable=self.cluster.is_reachable,
            places=(found.place for found in self._moves.runtime.find_places().values()),
        )

    async def finish_start(self) -> None:
        """Go on with the groups that the log has a place of."""
        assert self._moves is not None
        await self._moves.takeovers.start()

    async def stop_serving(self) -> None:
        moves = self._moves
        if moves is None:
            return
        await moves.relays.stop()
        await moves.topics.stop()
        await moves.end_offsets.stop()
        await moves.deletions.stop()
        await moves.takeovers.stop()
        await moves.offsets.stop()

    async def stop(self) -> None:
        await self._mirror.stop()
        await self.cluster.stop()


def _compute_session_timeouts_ms(longest_ms: int) -> tuple[int, ...]:
    """What the sentinel asks for, one after another, until the cluster allows it."""
    return tuple(
        sorted({longest_ms, *(each for each in _SESSION_TIMEOUTS_MS if each < longest_ms)})
    )[::-1]


async def _find_subscribed(runtime: Runtime) -> set[TopicName]:
    """The topics that consumer groups here subscribe to; many groups are looked at in slices."""
    found: set[TopicName] = set()
    for shard in runtime.shards:
        for group in shard.consumer_groups.values():
            found |= group.subscribed_topic_names()
        await asyncio.sleep(0)
    return found
