"""``ClusterFront``: the cluster behind, as Muster's node of the Kafka wire sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from gateway.apis.api_registry import APIS
from gateway.fronting.front import LinkUnavailable, PassedClient, PassedLink
from gateway.fronting.remembered import RememberedAnswers
from model.ids import GroupId
from model.places import Place
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.statistics import UpstreamStatistics

_NAMES: Final = {api.key: api.name for api in APIS}
NODE_ID_BASE: Final = 1 << 30
"""Muster's node is that many above its own ``node.id``, so that it is no broker's."""


class Places(Protocol):
    """Where groups are, and who has them taken over (``upstream.takeover``)."""

    def find_place(self, group_id: str) -> Place:
        """Where a group is."""

    def matches(self, group_id: str) -> bool:
        """Whether the group is one of those that are to be taken."""

    def ask_to_take(self, group_id: GroupId, cause: str) -> None:
        """Have the group taken over soon."""

    def other_muster_of(self, group_id: str) -> tuple[str, int] | None:
        """Host and port of another Muster that has the group, and lives."""


class ClusterFront:
    """Implements ``gateway.fronting.front.Front``."""

    def __init__(
        self,
        cluster: Cluster,
        places: Places,
        *,
        node_id: int,
        address_of: Callable[[int], tuple[str, int] | None],
        passes_anonymous: bool,
        statistics: UpstreamStatistics | None = None,
    ) -> None:
        """``address_of`` is that of a broker's relay.

        ``passes_anonymous``: clients that did not log in at the cluster are passed on too. They
        are nobody there: Muster does not show its own certificate for them.
        """
        self._cluster = cluster
        self._places = places
        self._node_id = NODE_ID_BASE + node_id
        self._address_of = address_of
        self._passes_anonymous = passes_anonymous
        self._statistics = statistics or UpstreamStatistics()
        self._remembered = RememberedAnswers()

    @property
    def node_id(self) -> int:
        return self._node_id

    @property
    def versions(self) -> Mapping[int, range]:
        return self._cluster.versions

    @property
    def offers_consumer_protocol(self) -> bool:
        return self._cluster.offers_consumer_protocol

    @property
    def remembered(self) -> RememberedAnswers:
        return self._remembered

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        return self._address_of(node_id)

    def find_place(self, group_id: str) -> Place:
        return self._places.find_place(group_id)

    def matches(self, group_id: str) -> bool:
        return self._places.matches(group_id)

    def ask_to_take(self, group_id: str, cause: str) -> None:
        self._places.ask_to_take(GroupId(group_id), cause)

    def other_muster_of(self, group_id: str) -> tuple[int, str, int] | None:
        found = self._places.other_muster_of(group_id)
        # Its node id is not known here, and no client keeps one from FindCoordinator.
        return None if found is None else (self._node_id + 1, *found)

    def note_passed_on(self, key: int) -> None:
        # Only APIs that all brokers serve are passed on: there are few keys.
        self._statistics.requests_passed_on[_NAMES.get(key, f"api {key}")] += 1

    async def open(self, connection: PassedClient) -> PassedLink:
        passed = connection.passed
        if passed is not None:
            if passed.is_closed:
                raise LinkUnavailable("the connection of the client's login has ended")
            return passed
        if not self._passes_anonymous:
            raise LinkUnavailable("the client has not logged in at the cluster")
        try:
            return await self._cluster.open_raw(None)
        except ClusterUnreachable as error:
            raise LinkUnavailable(str(error)) from error
