"""The groups of the cluster, as its brokers list and describe them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from model.errors import CoordinatorNotAvailable
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.takeover.machine.group_view import ViewedMember

_DESCRIBE_GROUPS: Final = 15
_LIST_GROUPS: Final = 16
_DEAD: Final = "Dead"
_TIMEOUT_MS: Final = 10_000
_DESCRIBED_AT_ONCE: Final = 100
"""Groups of a request: the description of one may be very large."""


class GroupThere:
    """A group of the cluster. ``members`` are without the sentinel of a Muster."""

    __slots__ = ("exists", "members", "protocol_type")

    def __init__(self, row: Any) -> None:
        self.exists = row.group_state != _DEAD
        self.protocol_type = str(row.protocol_type)
        viewed = (
            ViewedMember(
                member.member_id,
                getattr(member, "group_instance_id", None),
                member.client_id,
                member.client_host,
            )
            for member in row.members
        )
        self.members = tuple(member for member in viewed if not member.is_sentinel)


class GroupsThere:
    """Asks all brokers. Remembers which of them listed a group: that is its coordinator."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: Mapping[str, int] = {}

    async def list_ids(self, *, whole: bool) -> Iterable[str]:
        """The ids of all groups; with ``whole`` raises ``CoordinatorNotAvailable`` if not all."""
        request = ClientRequest(_LIST_GROUPS, {"states_filter": (), "types_filter": ()})
        nodes = tuple(self._cluster.brokers)
        answers = await asyncio.gather(
            *(self._cluster.ask(request, node_id=node, timeout_ms=_TIMEOUT_MS) for node in nodes),
            return_exceptions=True,
        )
        found: dict[str, int] = {}
        for node, answer in zip(nodes, answers, strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, ClusterUnreachable):
                raise answer
            if isinstance(answer, ClusterUnreachable) or answer.error_code != 0:
                if whole:
                    raise CoordinatorNotAvailable(
                        f"Broker {node} of the cluster cannot say which groups it has."
                    )
                continue
            found.update((str(row.group_id), node) for row in answer.groups)
        self._nodes = found
        return found

    async def describe(self, group_ids: Sequence[str]) -> Mapping[str, GroupThere]:
        """Those of the groups that can be described now."""
        by_node: dict[int, list[str]] = {}
        for group_id in group_ids:
            node = self._nodes.get(group_id)
            if node is not None and node in self._cluster.brokers:
                by_node.setdefault(node, []).append(group_id)
        parts = await asyncio.gather(*(self._ask(*each) for each in by_node.items()))
        found = {group_id: there for part in parts for group_id, there in part.items()}
        try:
            for group_id in group_ids:
                # Those that nobody listed, or whose coordinator is another one by now.
                if group_id not in found:
                    request = _make_request([group_id])
                    found.update(_read(await self._ask_coordinator(group_id, request)))
        except ClusterUnreachable:
            # Nor will the others be answered: do not wait for each of them.
            pass
        return found

    async def _ask(self, node: int, group_ids: Sequence[str]) -> Mapping[str, GroupThere]:
        found: dict[str, GroupThere] = {}
        for start in range(0, len(group_ids), _DESCRIBED_AT_ONCE):
            request = _make_request(group_ids[start : start + _DESCRIBED_AT_ONCE])
            try:
                answer = await self._cluster.ask(request, node_id=node, timeout_ms=_TIMEOUT_MS)
            except ClusterUnreachable:
                break
            found.update(_read(answer))
        return found

    async def _ask_coordinator(self, group_id: str, request: ClientRequest) -> Any:
        return await self._cluster.ask_coordinator(group_id, request, timeout_ms=_TIMEOUT_MS)


def _make_request(group_ids: Sequence[str]) -> ClientRequest:
    # Version 6 has an error for groups that do not exist.
    return ClientRequest(_DESCRIBE_GROUPS, {"groups": group_ids}, version_max=5)


def _read(answer: Any) -> Mapping[str, GroupThere]:
    return {str(row.group_id): GroupThere(row) for row in answer.groups if not row.error_code}
