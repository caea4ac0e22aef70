"""One group of the cluster: described, joined and left by Muster's own identity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from model.errors import ErrorCode
from upstream.cluster.cluster import BrokerLink, Cluster
from upstream.offsets.offset_requests import compute_code
from upstream.sentinel.sentinel_requests import (
    CONSUMER_GROUP_DESCRIBE,
    compute_missing_versions,
    make_consumer_describe,
    make_describe,
    make_join,
    make_leave,
    make_sync,
)
from upstream.sentinel.sentinel_seat import Seat
from upstream.sentinel.sentinel_sign import INSTANCE_ID, PROTOCOL_NAME
from upstream.takeover.machine.group_view import GroupView, ViewedMember
from upstream.takeover.machine.takeover_actions import Join
from upstream.takeover.machine.takeover_events import JoinAnswered

ASK_TIMEOUT_MS: Final = 10_000
JOIN_TIMEOUT_MS: Final = 90_000
"""Longer than a join phase waits for members that are removed meanwhile."""
_DEAD: Final = "Dead"
_GONE: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)


def read_view(group: Any, *, has_consumer_members: bool = False) -> GroupView:
    """A group of a DescribeGroups response."""
    return GroupView(
        compute_code(group.error_code),
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(
            ViewedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                bytes(member.member_metadata),
                bytes(member.member_assignment),
            )
            for member in group.members
        ),
        has_consumer_members,
    )


def read_join(response: Any, protocols: Sequence[str]) -> JoinAnswered:
    """The answer to the sentinel's JoinGroup.

    A follower is not told of the others, but of the leader. Only beside members can somebody else
    lead: nobody else has the sentinel's own protocol, though 2.8 names the sentinel's former id.
    """
    code = compute_code(response.error_code)
    member_id = response.member_id
    if code is not ErrorCode.NONE:
        return JoinAnswered(code, member_id)
    others = {member.member_id for member in response.members} - {member_id}
    is_leader = response.leader == member_id
    if not is_leader and response.protocol_name != PROTOCOL_NAME:
        others.add(response.leader)
    assigns = is_leader and not getattr(response, "skip_assignment", False)
    return JoinAnswered(code, member_id, response.generation_id, len(others), assigns)


class ClusterGroup:
    """Asks the cluster about one group. Each call may raise ``ClusterUnreachable``.

    The sentinel's JoinGroup has a connection of its own, which it holds back while it waits.
    """

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._link: BrokerLink | None = None
        self._has_moved = False

    async def describe(self) -> GroupView:
        """The group as it is now."""
        if compute_missing_versions(self._cluster.versions):
            return GroupView(ErrorCode.UNSUPPORTED_VERSION, "", "", "")
        request = make_describe([self._group_id])
        response = await self._ask(request)
        group = response.groups[0]
        if group.members or group.group_state not in ("", _DEAD):
            return read_view(group)
        return read_view(group, has_consumer_members=await self._has_consumer_members())

    async def _has_consumer_members(self) -> bool:
        if not self._cluster.versions.get(CONSUMER_GROUP_DESCRIBE):
            return False
        response = await self._ask(make_consumer_describe(self._group_id))
        group = response.groups[0]
        return compute_code(group.error_code) is ErrorCode.NONE and bool(group.members)

    async def join(self, action: Join) -> JoinAnswered:
        """Join as the sentinel."""
        self.close_link()
        node_id = await self._cluster.find_coordinator(
            self._group_id, again=self._has_moved, timeout_ms=ASK_TIMEOUT_MS
        )
        self._has_moved = True
        link = self._link = await self._cluster.open_link(node_id)
        request = make_join(
            self._group_id,
            action.member_id,
            action.protocols,
            action.session_timeout_ms,
            action.rebalance_timeout_ms,
        )
        response = await link.ask(request, timeout_ms=JOIN_TIMEOUT_MS)
        answered = read_join(response, action.protocols)
        self._has_moved = answered.code is not ErrorCode.NONE
        return answered

    def close_link(self) -> None:
        """Close the connection of the JoinGroup."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    async def sync(self, seat: Seat, assignment: bytes) -> ErrorCode:
        """Assign to the sentinel."""
        request = make_sync(self._group_id, seat.member_id, seat.generation, assignment)
        response = await self._ask(request)
        return compute_code(response.error_code)

    async def remove(self, members: Iterable[ViewedMember]) -> ErrorCode:
        """Remove members by one LeaveGroup; the first error that does not say that one is gone."""
        rows = [(member.member_id, member.instance_id) for member in members]
        return await self._leave(rows, "taken over by Muster")

    async def leave(self, member_id: str) -> ErrorCode:
        """The sentinel leaves; without a member id by its instance id alone."""
        return await self._leave([(member_id, INSTANCE_ID)], "given back by Muster")

    async def _leave(self, rows: list[tuple[str, str | None]], reason: str) -> ErrorCode:
        response = await self._ask(make_leave(self._group_id, rows, reason))
        codes = [compute_code(response.error_code)]
        codes += [compute_code(member.error_code) for member in response.members]
        return next((code for code in codes if code not in _GONE), ErrorCode.NONE)

    async def _ask(self, request: Any) -> Any:
        return await self._cluster.ask_coordinator(
            self._group_id, request, timeout_ms=ASK_TIMEOUT_MS
        )
