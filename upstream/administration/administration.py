"""``Administration``: implements ``UpstreamAdministration`` on the cluster and the takeovers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from coordinator.runtime.api import Coordinator
from coordinator.service.admin.upstream.upstream_administration import (
    GroupMove,
    InTheWay,
    UpstreamBroker,
    UpstreamDescription,
    UpstreamGroup,
)
from gateway.codec.client_frames import ClientRequest
from model.caller import INTERNAL
from model.commands.groups import ListGroups
from model.errors import (
    CoordinatorNotAvailable,
    GroupError,
    GroupIdNotFound,
    NonEmptyGroup,
    PolicyViolation,
)
from model.ids import GroupId
from model.places import GroupPlace, Place
from model.responses.groups import ListGroupsResponse
from upstream.administration.groups_there import GroupsThere, GroupThere
from upstream.administration.release_table import compute_release
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.hooks import SentinelIdentity
from upstream.takeover.machine.group_view import compute_strangers
from upstream.takeover.takeover_reports import TakeoverReport

_API_VERSIONS: Final = 18
_NO_GROUP: Final = GroupPlace(Place.UPSTREAM, 0)


class GroupMoves(Protocol):
    """What is needed of the takeovers."""

    def reports(self) -> Iterable[TakeoverReport]:
        """How the groups stand that were moved, or are."""

    def sentinel_of(self, group_id: GroupId) -> SentinelIdentity | None:
        """The sentinel of a group."""

    async def take(self, group_id: GroupId, *, dry_run: bool) -> TakeoverReport:
        """Take a group, or only look at it; returns when it is here, or the take is given up."""

    async def release(self, group_id: GroupId, *, dry_run: bool) -> TakeoverReport:
        """Give a group back, or only look at it; returns when it is back, or that is given up."""


class RelayedClients(Protocol):
    """What is needed of the relays."""

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """The address of a broker's relay."""

    def members_of(self, group_id: str) -> Mapping[str, object]:
        """The members that came through a relay, by id."""


@dataclass(frozen=True, slots=True)
class AdministrationSettings:
    """What an operator is told of this Muster.

    ``identity``: who it is for the cluster, without secrets.
    """

    identity: str
    offsets_store: str
    node_address: str
    takeover_groups: str = ""


class Administration:
    """See ``coordinator.service.admin.upstream.upstream_administration``.

    ``places``: the groups with a place of their own.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        relays: RelayedClients,
        moves: GroupMoves,
        places: Callable[[], Mapping[GroupId, GroupPlace]],
        settings: AdministrationSettings,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._relays = relays
        self._moves = moves
        self._places = places
        self._settings = settings
        self._there = GroupsThere(cluster)

    async def describe(self) -> UpstreamDescription:
        cluster, settings = self._cluster, self._settings
        features = await self._read_features()
        unreachable = "" if cluster.is_reachable else "the cluster cannot be reached"
        return UpstreamDescription(
            cluster_id=cluster.cluster_id,
            brokers=[
                UpstreamBroker(
                    broker.node_id,
                    _render(broker.host, broker.port),
                    broker.rack or "",
                    _render_found(self._relays.address_of(broker.node_id)),
                )
                for broker in cluster.brokers.values()
            ],
            is_reachable=cluster.is_reachable,
            has_consumer_protocol=cluster.has_consumer_protocol,
            has_topic_ids=cluster.has_topic_ids,
            identity=settings.identity,
            offsets_store=settings.offsets_store,
            node_address=settings.node_address,
            fault=cluster.fault or unreachable,
            release=compute_release(cluster.versions),
            features=features,
            takeover_groups=settings.takeover_groups,
        )

    async def _read_features(self) -> Mapping[str, int]:
        """The finalized features; none if the cluster does not say."""
        client = {"client_software_name": "muster", "client_software_version": "1"}
        try:
            answer: Any = await self._cluster.ask(ClientRequest(_API_VERSIONS, client))
        except ClusterUnreachable:
            return {}
        found = getattr(answer, "finalized_features", ())
        return {str(row.name): int(row.max_version_level) for row in found}

    async def list_group_ids(self, *, whole: bool) -> Sequence[GroupId]:
        there = await self._there.list_ids(whole=whole)
        reported = (GroupId(report.group_id) for report in self._moves.reports())
        return sorted({*map(GroupId, there), *self._places(), *reported})

    def find_places(self) -> Mapping[GroupId, Place]:
        return {group_id: found.place for group_id, found in self._places().items()}

    async def describe_groups(self, group_ids: Sequence[GroupId]) -> Sequence[UpstreamGroup]:
        there = await self._there.describe(group_ids)
        members_here = await self._count_members()
        reports = {report.group_id: report for report in self._moves.reports()}
        return [
            self._describe(
                group_id, there.get(group_id), reports.get(group_id), members_here.get(group_id, 0)
            )
            for group_id in group_ids
        ]

    async def _count_members(self) -> Mapping[GroupId, int]:
        listed = await self._coordinator.call(ListGroups(INTERNAL))
        assert isinstance(listed, ListGroupsResponse)
        return {group.group_id: group.members for group in listed.groups}

    def _describe(
        self,
        group_id: GroupId,
        there: GroupThere | None,
        report: TakeoverReport | None,
        members_here: int,
    ) -> UpstreamGroup:
        found = self._places().get(group_id, _NO_GROUP)
        sentinel = self._moves.sentinel_of(group_id)
        strangers = () if report is None else report.strangers
        if there is not None and found.place in (Place.UPSTREAM, Place.TAKING):
            # Who is there now says more than who was there at the last attempt.
            known = self._relays.members_of(group_id).keys()
            strangers = compute_strangers(there.members, known)
        return UpstreamGroup(
            group_id=group_id,
            place=found.place,
            since_ms=found.since_ms,
            step="" if report is None else report.step,
            sentinel_member_id="" if sentinel is None else sentinel.member_id,
            sentinel_generation=0 if sentinel is None else sentinel.generation,
            members_here=members_here,
            members_there=0 if there is None else len(there.members),
            strangers=[InTheWay(each.member_id, each.client_id, each.host) for each in strangers],
            cause="" if report is None else report.cause,
            error="" if report is None else report.error,
            protocol_type="" if there is None else there.protocol_type,
        )

    async def take(self, group_id: GroupId, *, dry_run: bool) -> GroupMove:
        before = self._places().get(group_id, _NO_GROUP).place
        if before is Place.UPSTREAM:
            await self._check_exists(group_id)
        report = await self._moves.take(group_id, dry_run=dry_run)
        return await self._finish(before, report, Place.MUSTER, dry_run)

    async def _check_exists(self, group_id: GroupId) -> None:
        there = (await self._there.describe([group_id])).get(group_id)
        if there is None:
            raise CoordinatorNotAvailable("The cluster cannot describe the group now.")
        if not there.exists:
            raise GroupIdNotFound(f"The cluster has no group {group_id}.")

    async def release(self, group_id: GroupId, *, dry_run: bool) -> GroupMove:
        before = self._places().get(group_id, _NO_GROUP).place
        if before is Place.UPSTREAM:
            await self._check_exists(group_id)
            (group,) = await self.describe_groups([group_id])
            return GroupMove(before, group)
        report = await self._moves.release(group_id, dry_run=dry_run)
        return await self._finish(before, report, Place.UPSTREAM, dry_run)

    async def _finish(
        self, before: Place, report: TakeoverReport, wanted: Place, dry_run: bool
    ) -> GroupMove:
        (group,) = await self.describe_groups([GroupId(report.group_id)])
        return GroupMove(before, group, compute_error(report, wanted, dry_run=dry_run))


def compute_error(report: TakeoverReport, wanted: Place, *, dry_run: bool) -> GroupError | None:
    """Why a group is not where it was to be moved, or with a dry run would not be."""
    if report.strangers:
        return NonEmptyGroup(report.error or "members reach the cluster directly")
    if report.error:
        return PolicyViolation(report.error)
    if not dry_run and report.place is not wanted:
        return PolicyViolation(f"it is still {report.place.value}: {report.step}")
    return None


def _render(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _render_found(address: tuple[str, int] | None) -> str:
    return "" if address is None else _render(*address)
