"""Giving groups back without a server: the sentinels of a Muster leave the cluster's groups.

For when Muster does not run and is not to run again. Members of those groups then find the cluster
as their coordinator, at the brokers' own addresses. A Muster that runs would join again at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from model.errors import ErrorCode
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.sentinel.sentinel_sign import SentinelSign
from upstream.takeover.asking.cluster_group import ClusterGroup
from upstream.takeover.asking.group_listing import list_groups

_GONE: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)


@dataclass(frozen=True, slots=True)
class AloneRelease:
    """What became of one group. ``sign`` is that of its sentinel, if that had one.

    ``is_released``: its sentinel has left, or would have. ``error``: why not.
    """

    group_id: str
    is_released: bool
    sign: SentinelSign | None = None
    error: str = ""


async def release_alone(
    cluster: Cluster, group_ids: Sequence[str] | None, *, dry_run: bool
) -> list[AloneRelease]:
    """Make the sentinels of these groups leave; of all that have one if ``None``.

    Raises ``ClusterUnreachable`` if the groups cannot be listed.
    """
    named = await list_groups(cluster) if group_ids is None else group_ids
    released = [await _release(cluster, group_id, dry_run) for group_id in named]
    return [each for each in released if group_ids is not None or each.is_released or each.sign]


async def _release(cluster: Cluster, group_id: str, dry_run: bool) -> AloneRelease:
    group = ClusterGroup(cluster, group_id)
    try:
        view = await group.describe()
        if view.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return AloneRelease(group_id, False, None, f"the cluster answered {view.error.name}")
        if view.sentinel is None:
            return AloneRelease(group_id, False, None, "no Muster has it")
        if dry_run:
            return AloneRelease(group_id, True, view.sign)
        code = await group.leave(view.sentinel.member_id)
    except ClusterUnreachable as cause:
        return AloneRelease(group_id, False, None, f"the cluster did not answer: {cause}")
    if code in _GONE:
        return AloneRelease(group_id, True, view.sign)
    return AloneRelease(group_id, False, view.sign, f"the cluster answered {code.name}")
