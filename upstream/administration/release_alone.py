"""Gives groups back without a running server: the sentinels are removed from the cluster's groups.

Members that a server had are gone with it, so nobody has to be moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from model.places import Place
from upstream.administration.groups_there import GroupsThere
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.sentinel.sentinel_sign import INSTANCE_ID, SentinelSign
from upstream.takeover.takeover_reports import TakeoverReport

_LEAVE_GROUP: Final = 13
_TIMEOUT_MS: Final = 30_000
_LISTEN_TIMEOUT_S: Final = 2.0
_GONE: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
_STEP: Final = "the sentinel leaves"


class AloneReleases:
    """Releases groups of one cluster. Raises ``CoordinatorNotAvailable`` from ``find_all``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._there = GroupsThere(cluster)

    async def find_all(self) -> Sequence[str]:
        """All groups that a Muster has, sorted."""
        group_ids = list(await self._there.list_ids(whole=True))
        described = await self._there.describe(group_ids)
        return sorted(
            group_id for group_id, there in described.items() if there.sentinel is not None
        )

    async def release(self, group_id: str, *, dry_run: bool) -> TakeoverReport:
        """Give one group back, or only find out whether it could be."""
        there = (await self._there.describe([group_id])).get(group_id)
        if there is None:
            return _report(group_id, Place.MUSTER, "the cluster cannot describe the group now")
        if there.sentinel is None:
            said = "" if there.exists else "the cluster has no such group"
            return _report(group_id, Place.UPSTREAM, said)
        sign = there.sign
        if sign is not None and await _listens(sign):
            return _report(
                group_id,
                Place.MUSTER,
                f"Muster at {sign.host}:{sign.port} has the group and is running: release it there",
            )
        if dry_run:
            return _report(group_id, Place.MUSTER, "")
        return await self._leave(group_id, there.sentinel.member_id)

    async def _leave(self, group_id: str, member_id: str) -> TakeoverReport:
        member = {
            "member_id": member_id,
            "group_instance_id": INSTANCE_ID,
            "reason": "released without a server",
        }
        request = ClientRequest(_LEAVE_GROUP, {"group_id": group_id, "members": [member]})
        try:
            answer: Any = await self._cluster.ask_coordinator(
                group_id, request, timeout_ms=_TIMEOUT_MS
            )
        except ClusterUnreachable as error:
            return _report(group_id, Place.MUSTER, f"the cluster did not answer: {error}")
        for code in (answer.error_code, *(row.error_code for row in answer.members)):
            if code not in _GONE:
                return _report(group_id, Place.MUSTER, f"the cluster refused it: {_name(code)}")
        return _report(group_id, Place.UPSTREAM, "")


def _report(group_id: str, place: Place, error: str) -> TakeoverReport:
    return TakeoverReport(group_id, place, _STEP, "asked for without a server", (), error)


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


async def _listens(sign: SentinelSign) -> bool:
    """Whether the Muster that signed accepts connections: it would take the group again."""
    try:
        async with asyncio.timeout(_LISTEN_TIMEOUT_S):
            _, writer = await asyncio.open_connection(sign.host, sign.port)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.close()
    return True
