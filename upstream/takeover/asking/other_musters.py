"""Other Musters in front of the same cluster: which groups they have, and whether they live.

Their sentinels are found by listing and describing the cluster's groups. A client is sent to the
Muster that has its group; when that one is dead, its groups are there to be taken.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from model.errors import ErrorCode
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.offsets.offset_requests import compute_code
from upstream.sentinel.sentinel_requests import compute_missing_versions, make_describe
from upstream.sentinel.sentinel_sign import SentinelSign
from upstream.takeover.asking.cluster_group import read_view
from upstream.takeover.asking.group_listing import list_groups

log = structlog.get_logger("muster.upstream")

INTERVAL_S: Final = 2.0
SHARE_MAX: Final = 0.05
"""How much of the time may go into looking; it is looked less often then."""
PROBE_TIMEOUT_S: Final = 1.0
PROBES_MAX: Final = 3
"""So many probes in a row without an answer, and a Muster is dead."""
_PER_REQUEST: Final = 500
_ASK_TIMEOUT_MS: Final = 10_000
_PROBE_FRAME_MAX: Final = 1 << 20
_API_VERSIONS: Final = struct.pack(">ihhih", 13, 18, 0, 1, 3) + b"mst"


@dataclass(slots=True)
class _Other:
    """Another Muster. ``silent``: how often it has not answered in a row."""

    sign: SentinelSign
    silent: int = 0


async def probe(host: str, port: int) -> bool:
    """Whether a Kafka server answers there, at once. With TLS a connection must do."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_API_VERSIONS)
                size = int.from_bytes(await reader.readexactly(4), "big")
                return 4 <= size <= _PROBE_FRAME_MAX
            finally:
                writer.close()
    return False


class OtherMusters:
    """Follows the sentinels of others.

    Anybody with READ on a group can join it with a sentinel's sign and so name an address. Clients
    are only sent to, and connections only made to, ``known`` addresses. ``is_ours`` says whether a
    group is here. ``on_dead`` is told of each group whose Muster is dead, again and again while
    that is so.
    """

    def __init__(
        self,
        cluster: Cluster,
        sign: SentinelSign,
        is_ours: Callable[[str], bool],
        on_dead: Callable[[str], None],
        known: Collection[tuple[str, int]] = (),
    ) -> None:
        self._cluster = cluster
        self._sign = sign
        self._known = frozenset((*known, (sign.host, sign.port)))
        self._is_ours = is_ours
        self._on_dead = on_dead
        self._groups: dict[str, str] = {}
        self._others: dict[str, _Other] = {}
        self._took_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        """Follow no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def find(self, group_id: str) -> SentinelSign | None:
        """The Muster that has the group, if it lives; ``None`` if none is known."""
        other = self._others.get(self._groups.get(group_id, ""))
        return None if other is None or other.silent >= PROBES_MAX else other.sign

    def has(self, group_id: str) -> bool:
        """Whether another Muster has the group, alive or dead."""
        return group_id in self._groups

    def is_dead(self, group_id: str) -> bool:
        """Whether another Muster has the group that does not live."""
        other = self._others.get(self._groups.get(group_id, ""))
        return other is not None and other.silent >= PROBES_MAX

    async def look(self) -> None:
        """Find the groups of others, and probe those others once."""
        began_s = time.monotonic()
        group_ids = [each for each in await list_groups(self._cluster) if not self._is_ours(each)]
        found: dict[str, SentinelSign] = {}
        for part in _split(group_ids, _PER_REQUEST):
            found |= await self._find_signs(part)
        # Without the probes, which only wait.
        self._took_s = time.monotonic() - began_s
        self._groups = {group_id: sign.uuid for group_id, sign in found.items()}
        signs = {sign.uuid: sign for sign in found.values()}
        others = {uuid: _Other(sign, self._silence_of(sign)) for uuid, sign in signs.items()}
        await asyncio.gather(*map(self._probe, others.values()))
        self._others = others
        for group_id, uuid in self._groups.items():
            if others[uuid].silent >= PROBES_MAX:
                self._on_dead(group_id)

    def _silence_of(self, sign: SentinelSign) -> int:
        known = self._others.get(sign.uuid)
        return 0 if known is None or known.sign != sign else known.silent

    async def _probe(self, other: _Other) -> None:
        if (other.sign.host, other.sign.port) == (self._sign.host, self._sign.port):
            # It was here, with a store that is gone.
            other.silent = PROBES_MAX
            return
        lives = await probe(other.sign.host, other.sign.port)
        other.silent = 0 if lives else other.silent + 1

    async def _find_signs(self, group_ids: Sequence[str]) -> dict[str, SentinelSign]:
        by_node: dict[int, list[str]] = {}
        for group_id in group_ids:
            node_id = await self._cluster.find_coordinator(group_id, timeout_ms=_ASK_TIMEOUT_MS)
            by_node.setdefault(node_id, []).append(group_id)
        found: dict[str, SentinelSign] = {}
        for node_id, named in by_node.items():
            response = await self._cluster.ask(
                make_describe(named), node_id=node_id, timeout_ms=_ASK_TIMEOUT_MS
            )
            for group in response.groups:
                sign = read_view(group).sign
                is_read = compute_code(group.error_code) is ErrorCode.NONE
                if is_read and sign is not None and self._is_known_other(sign):
                    found[str(group.group_id)] = sign
        return found

    def _is_known_other(self, sign: SentinelSign) -> bool:
        return sign.uuid != self._sign.uuid and (sign.host, sign.port) in self._known

    async def _follow(self) -> None:
        while True:
            try:
                if not compute_missing_versions(self._cluster.versions):
                    await self.look()
            except ClusterUnreachable as cause:
                log.debug("other_musters_not_found", cause=str(cause))
            except Exception:
                # What one answer says must not end that others are followed.
                log.exception("looking_for_musters_failed")
            await asyncio.sleep(max(INTERVAL_S, self._took_s / SHARE_MAX))


def _split(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))
