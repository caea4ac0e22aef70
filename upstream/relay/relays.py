"""``Relays``: one relay a broker, which come and go with the cluster's brokers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Final

from gateway.rewriting.frames import Rewriting
from gateway.rewriting.naming import Address, Naming
from upstream.cluster.cluster import Cluster, ClusterBroker
from upstream.relay.groups.seen_members import SeenMember
from upstream.relay.relay import Relay
from upstream.relay.relay_places import RelayPlaces, is_here
from upstream.relay.relay_settings import RelaySettings
from upstream.relay.relaying import Relaying
from upstream.statistics import UpstreamStatistics

logger = logging.getLogger("muster.upstream")

_CHECK_S: Final = 1.0


class RelayFault(Exception):
    """The relays cannot start; a sentence for the operator."""


class Relays:
    """``on_changed`` is called after each change of what ``address_of`` says."""

    def __init__(
        self,
        cluster: Cluster,
        places: RelayPlaces,
        settings: RelaySettings,
        statistics: UpstreamStatistics,
        on_changed: Callable[[], None] = lambda: None,
    ) -> None:
        naming = Naming(self.address_of, settings.own, self._is_here)
        rewriting = Rewriting(naming, settings.added)
        self._relaying = Relaying(cluster, places, settings, rewriting, statistics)
        self._on_changed = on_changed
        self._relays: dict[int, Relay] = {}
        self._brokers: dict[int, ClusterBroker] = {}
        self._ports: dict[int, int] = {}
        """The port of each broker that was ever seen: a broker that comes back has it again."""
        self._faults: dict[int, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._following = asyncio.Lock()
        self._is_stopped = False

    async def start(self) -> None:
        """Listen for each broker that is known. Raises ``RelayFault``."""
        await self._follow()
        if self._faults:
            raise RelayFault(next(iter(self._faults.values())))
        self._relaying.cluster.on_brokers_changed(self._on_brokers_changed)
        self._run(self._watch())

    async def stop(self) -> None:
        """Close all listeners and connections."""
        self._is_stopped = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for relay in self._relays.values():
            await relay.stop("stopping")
        self._relays.clear()

    def address_of(self, node_id: int) -> Address | None:
        """The address of a broker's relay; ``None`` if it has none."""
        relay = self._relays.get(node_id)
        return None if relay is None else (self._relaying.settings.own.host, relay.port)

    def members_of(self, group_id: str) -> Mapping[str, SeenMember]:
        """The classic members of a group that came through a relay, by id."""
        return self._relaying.members.find(group_id, asyncio.get_running_loop().time())

    def end_waits(self, group_id: str) -> None:
        """Answer the JoinGroup and SyncGroup requests that wait in brokers: NOT_COORDINATOR."""
        self._relaying.waits.end(group_id)

    @property
    def held_bytes(self) -> int:
        """Bytes of frames that are being looked at, over all relays."""
        return self._relaying.held_bytes

    @property
    def connections(self) -> Mapping[int, int]:
        """Open connections by broker."""
        return {node_id: len(relay.connections) for node_id, relay in self._relays.items()}

    def _is_here(self, group_id: str) -> bool:
        return is_here(self._relaying.places, group_id)

    # ------------------------------------------------------------------- brokers come and go

    def _on_brokers_changed(self) -> None:
        if not self._is_stopped:
            self._run(self._follow())

    async def _follow(self) -> None:
        async with self._following:
            brokers = dict(self._relaying.cluster.brokers)
            before = set(self._relays)
            gone = [node_id for node_id in self._relays if node_id not in brokers]
            for node_id in gone:
                await self._relays.pop(node_id).stop("broker-gone")
            for node_id in sorted(brokers):
                await self._follow_broker(node_id, brokers[node_id])
            is_changed = set(self._relays) != before
            self._brokers = brokers
        if is_changed:
            self._on_changed()

    async def _follow_broker(self, node_id: int, broker: ClusterBroker) -> None:
        relay = self._relays.get(node_id)
        known = self._brokers.get(node_id)
        if relay is not None:
            if known is not None and (known.host, known.port) != (broker.host, broker.port):
                relay.close_connections("broker-moved")
            return
        port = self._find_port(node_id)
        if port is None:
            ports = self._relaying.settings.ports
            self._note_fault(
                node_id,
                f"broker {node_id} has no relay: upstream.relay.ports has {len(ports)} ports"
                f" ({ports.start}-{ports.stop - 1}), and each broker needs one",
            )
            return
        relay = Relay(self._relaying, node_id, port)
        try:
            await relay.start()
        except OSError as error:
            self._note_fault(
                node_id,
                f"broker {node_id} has no relay: cannot listen on port {port}"
                f" ({error.strerror or error})",
            )
            return
        self._faults.pop(node_id, None)
        self._relays[node_id] = relay

    def _find_port(self, node_id: int) -> int | None:
        """The port of a broker: its own, or one that no broker has, or has any more."""
        if node_id in self._ports:
            return self._ports[node_id]
        taken = set(self._ports.values())
        port = next((port for port in self._relaying.settings.ports if port not in taken), None)
        if port is None:
            gone = [other for other in self._ports if other not in self._relays]
            gone = [other for other in gone if other not in self._relaying.cluster.brokers]
            if not gone:
                return None
            port = self._ports.pop(gone[0])
        self._ports[node_id] = port
        return port

    def _note_fault(self, node_id: int, fault: str) -> None:
        if self._faults.get(node_id) != fault:
            logger.error("%s", fault)
        self._faults[node_id] = fault

    # ----------------------------------------------------------------------------- in between

    def _run(self, work: object) -> None:
        assert asyncio.iscoroutine(work)
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Close what is idle, forget who is silent, and try again where listening failed."""
        while True:
            await asyncio.sleep(_CHECK_S)
            now = asyncio.get_running_loop().time()
            for relay in tuple(self._relays.values()):
                relay.check(now)
            self._relaying.members.sweep(now)
            if self._faults:
                with contextlib.suppress(OSError):
                    await self._follow()
