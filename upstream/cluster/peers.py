"""The brokers that are known, and those to begin with: who can be asked, and in which versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import NotSent, NotServed
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.opening import Opener
from upstream.cluster.metadata import ClusterImage
from upstream.cluster.peer import Peer


class Peers:
    """``on_trouble`` is called when a connection is lost or cannot be had."""

    def __init__(self, opener: Opener, on_trouble: Callable[[], None]) -> None:
        self.image = ClusterImage()
        self._opener = opener
        self._on_trouble = on_trouble
        self._known: dict[int, Peer] = {}
        self._bootstrap = self._make_bootstrap()
        self._versions: Mapping[int, range] | None = None
        self._turn = 0

    @property
    def bootstrap(self) -> tuple[Peer, ...]:
        """The addresses of the settings."""
        return self._bootstrap

    @property
    def versions(self) -> Mapping[int, range]:
        """The versions of each API that all brokers serve that were ever connected to."""
        if self._versions is None:
            self._versions = compute_common([peer.versions for peer in self._known.values()])
        return self._versions

    def level_of(self, feature: str) -> int:
        """The finalized level of a feature, by the brokers that have been connected to."""
        heard = [peer.features for peer in self._known.values() if peer.versions]
        return min((features.get(feature, 0) for features in heard), default=0)

    def find(self, node_id: int) -> Peer | None:
        """A broker by its id, if the cluster has it."""
        return self._known.get(node_id)

    def choose(self) -> int | None:
        """A broker for whoever takes any, in turns: one that is connected if there is one."""
        self._turn += 1
        found = [node for node, peer in self._known.items() if peer.is_connected]
        found = found or list(self._known)
        return found[self._turn % len(found)] if found else None

    def replace(self, image: ClusterImage) -> bool:
        """Follow the cluster; whether its brokers have changed."""
        before, self.image = self.image.brokers, image
        if before == image.brokers:
            return False
        for node_id, peer in list(self._known.items()):
            broker = image.brokers.get(node_id)
            if broker is None or (broker.host, broker.port) != (peer.host, peer.port):
                del self._known[node_id]
                peer.retire()
        for node_id, broker in image.brokers.items():
            if node_id not in self._known:
                self._known[node_id] = self._make(broker.host, broker.port)
        self._versions = None
        return True

    async def connect_all(self) -> list[BaseException]:
        """Connect to every broker; the failures."""
        made = await asyncio.gather(
            *(peer.connect() for peer in self._known.values()), return_exceptions=True
        )
        if len(made) > sum(isinstance(each, BaseException) for each in made):
            self._leave_bootstrap()
        return [each for each in made if isinstance(each, BaseException)]

    def warm(self) -> None:
        """Begin to connect wherever there is no connection, so that versions are known."""
        for peer in self._known.values():
            peer.warm()

    async def ask_any(self, request: ClientRequest, timeout_ms: int) -> Any:
        """Ask one broker after another until it was sent. Raises ``ClusterUnreachable``."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_ms / 1_000
        while True:
            error = NotSent("no broker is known")
            for peer in self._candidates():
                left_ms = int((end_s - loop.time()) * 1_000)
                if left_ms <= 0:
                    break
                try:
                    return await peer.ask(request, left_ms)
                except NotServed:
                    raise
                except NotSent as failure:
                    error = failure
                    self._on_trouble()
            if not await pause(self._opener.settings, end_s):
                raise error

    def _candidates(self) -> Iterator[Peer]:
        """Those that are connected, in turns; then the others; then the settings' addresses."""
        known = list(self._known.values())
        self._turn += 1
        at = self._turn % len(known) if known else 0
        known = known[at:] + known[:at]
        yield from sorted(known, key=lambda peer: (not peer.is_connected, peer.wait_s))
        yield from self._bootstrap

    def close(self) -> None:
        """Close all connections."""
        for peer in (*self._known.values(), *self._bootstrap):
            peer.close()

    def _leave_bootstrap(self) -> None:
        for peer in self._bootstrap:
            peer.retire()
        self._bootstrap = self._make_bootstrap()

    def _make_bootstrap(self) -> tuple[Peer, ...]:
        settings = self._opener.settings
        return tuple(Peer(self._opener, host, port) for host, port in settings.bootstrap)

    def _make(self, host: str, port: int) -> Peer:
        return Peer(self._opener, host, port, self._forget_versions, self._on_trouble)

    def _forget_versions(self) -> None:
        self._versions = None


async def pause(settings: ClusterSettings, end_s: float) -> bool:
    """Wait before the next attempt; false if no time would be left."""
    left_s = end_s - asyncio.get_running_loop().time()
    wait_s = settings.backoff_ms / 1_000
    if left_s <= wait_s:
        return False
    await asyncio.sleep(wait_s)
    return True


def compute_common(served: list[Mapping[int, range]]) -> Mapping[int, range]:
    """The versions of each API that all serve, those left out that have served nothing yet."""
    heard = [each for each in served if each]
    if not heard:
        return {}
    common = {}
    for key in set.intersection(*(set(each) for each in heard)):
        least = max(each[key].start for each in heard)
        stop = min(each[key].stop for each in heard)
        if least < stop:
            common[key] = range(least, stop)
    return common
