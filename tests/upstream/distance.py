"""A scene whose clients, or whose cluster, are far from Muster: proxies hold every byte back.

Muster and the cluster listen on 127.0.0.1, and are advertised at hosts where the proxies listen.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.kafka.processes import HOST
from tests.kafka.releases import KafkaCluster, Release, start_cluster
from tests.latency.proxy import DelayProxy
from tests.server import MusterServer
from tests.upstream.scene import Scene

CLIENTS, CLUSTER = "clients", "cluster"
_OF_MUSTER, _OF_BROKERS = "127.0.0.2", "127.0.0.3"
_FAR: Final = "FAR"


class DistantScene(Scene):
    """``far`` is who is so far from Muster; `hold` and `let_go` are of all those proxies."""

    def __init__(
        self, folder: Path, release: Release, far: str, round_trip_ms: float, **more: Any
    ) -> None:
        super().__init__(folder, release, **more)
        self._far = far
        self._round_trip_ms = round_trip_ms
        self._proxies: list[DelayProxy] = []
        self._links = ExitStack()

    @property
    def bootstrap(self) -> str:
        if self._far == CLIENTS and self.server is not None:
            return f"{_OF_MUSTER}:{self.server.kafka.rpartition(':')[2]}"
        return super().bootstrap

    def hold(self) -> None:
        """From now on nothing comes, in neither direction, and nobody is told."""
        for proxy in self._proxies:
            proxy.hold()

    def let_go(self) -> None:
        for proxy in self._proxies:
            proxy.let_go()

    def __exit__(self, *_: Any) -> None:
        try:
            super().__exit__(*_)
        finally:
            self._links.close()

    def start_cluster(self) -> KafkaCluster:
        if self._far == CLIENTS:
            return super().start_cluster()
        cluster = start_cluster(
            self._release,
            self._brokers,
            self._cluster_settings,
            listeners={_FAR: "PLAINTEXT"},
            advertised={_FAR: _OF_BROKERS},
            folder=self.folder / "cluster",
        )
        for broker in cluster.brokers:
            self._link(_OF_BROKERS, int(cluster.address(broker, _FAR).rpartition(":")[2]))
        self._muster_settings["upstream.bootstrap.servers"] = ",".join(
            cluster.address(broker, _FAR).replace(HOST, _OF_BROKERS) for broker in cluster.brokers
        )
        return cluster

    def make_server(self, name: str) -> MusterServer:
        server = super().make_server(name)
        if self._far == CLIENTS:
            for port in self.ports:
                self._link(_OF_MUSTER, port)
            server.arguments.append(f"--advertised.kafka={_OF_MUSTER}:{self.ports[0]}")
        return server

    def _link(self, host: str, port: int) -> None:
        """To the same port of 127.0.0.1."""
        proxy = DelayProxy(self._round_trip_ms, listen=(host, port))
        proxy.target = HOST, port
        self._proxies.append(self._links.enter_context(proxy))
