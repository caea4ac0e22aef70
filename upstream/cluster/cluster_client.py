"""``ClusterClient``: the cluster, asked in Muster's own name over connections that are kept.

Brokers come, go and move, and so does the controller: they are read anew every few seconds, and at
once after any trouble. If another cluster answers, nothing is asked any more (``fault``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import structlog

from gateway.codec.client_frames import ClientRequest
from upstream.cluster.cluster import ClusterBroker, ClusterUnreachable, NotSent, NotServed
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.links import OwnLink, StreamLink
from upstream.cluster.connections.opening import Opener
from upstream.cluster.consumer_protocol import FEATURE, find_consumer_protocol
from upstream.cluster.coordinators import Coordinators
from upstream.cluster.errors_in_answers import wants_other_controller
from upstream.cluster.metadata import METADATA, NO_TOPICS, compute_image
from upstream.cluster.peers import Peers, pause
from upstream.cluster.start_checks import check_brokers, check_image, find_cluster

_TOPIC_IDS_SINCE: Final = 10
_IDS_FOR_CLIENTS_SINCE: Final = 12
"""Clients of the consumer protocol ask for topics by id (KIP-516), of brokers from 3.1 on."""
_REFRESH_PAUSE_S: Final = 0.1

log = structlog.get_logger()


class ClusterClient:
    """Implements ``Cluster``. ``start`` before anything else, ``stop`` at the end."""

    def __init__(self, settings: ClusterSettings) -> None:
        """Raises ``ClientSecurityFault`` for files that cannot be used."""
        self._settings = settings
        self._opener = Opener(settings)
        self._wanted = asyncio.Event()
        self._peers = Peers(self._opener, self._wanted.set)
        self._coordinators = Coordinators(self._ask_any, self._ask_once)
        self._callbacks: list[Callable[[], None]] = []
        self._is_reachable = False
        self._has_consumer_protocol = False
        self._fault: str | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find the cluster and connect to its brokers. Raises ``UpstreamFault``."""
        try:
            image = await find_cluster(self._opener, self._peers.bootstrap)
            check_image(image)
            self._peers.replace(image)
            check_brokers(await self._peers.connect_all(), self._peers.versions)
        except BaseException:
            self._peers.close()
            raise
        self._is_reachable = True
        self._has_consumer_protocol = await find_consumer_protocol(
            self._ask_any, self._peers.versions, self._peers.level_of(FEATURE)
        )
        self._following = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Close everything."""
        for task in (self._following, self._refreshing):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))
        self._peers.close()

    @property
    def cluster_id(self) -> str:
        return self._peers.image.cluster_id

    @property
    def controller_id(self) -> int:
        return self._peers.image.controller_id

    @property
    def brokers(self) -> Mapping[int, ClusterBroker]:
        return self._peers.image.brokers

    @property
    def versions(self) -> Mapping[int, range]:
        return self._peers.versions

    @property
    def is_reachable(self) -> bool:
        return self._is_reachable and self._fault is None

    @property
    def fault(self) -> str | None:
        return self._fault

    @property
    def has_topic_ids(self) -> bool:
        return self._metadata_newest >= _TOPIC_IDS_SINCE

    @property
    def offers_consumer_protocol(self) -> bool:
        return self._metadata_newest >= _IDS_FOR_CLIENTS_SINCE

    @property
    def has_consumer_protocol(self) -> bool:
        return self._has_consumer_protocol

    @property
    def _metadata_newest(self) -> int:
        served = self._peers.versions.get(METADATA)
        return served[-1] if served else -1

    def on_brokers_changed(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    async def ask(
        self, request: ClientRequest, *, node_id: int | None = None, timeout_ms: int = 30_000
    ) -> Any:
        if node_id is None:
            return await self._ask_any(request, timeout_ms)
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_ms / 1_000
        while True:
            left_ms = max(int((end_s - loop.time()) * 1_000), 1)
            try:
                return await self._ask_once(node_id, request, left_ms)
            except NotServed:
                raise
            except NotSent:
                if self._fault or not await pause(self._settings, end_s):
                    raise

    async def _ask_any(self, request: ClientRequest, timeout_ms: int) -> Any:
        self._check_fault()
        try:
            return self._note_answer(await self._peers.ask_any(request, timeout_ms))
        except ClusterUnreachable as error:
            self._note_trouble(error)
            raise

    async def _ask_once(self, node_id: int, request: ClientRequest, timeout_ms: int) -> Any:
        self._check_fault()
        try:
            peer = self._peers.find(node_id)
            if peer is None:
                raise NotSent(f"the cluster has no broker {node_id}")
            return self._note_answer(await peer.ask(request, timeout_ms))
        except ClusterUnreachable as error:
            self._note_trouble(error)
            raise

    def _check_fault(self) -> None:
        if self._fault is not None:
            raise NotSent(self._fault)

    def _note_answer(self, answer: Any) -> Any:
        self._is_reachable = True
        if wants_other_controller(answer):
            self._wanted.set()
        return answer

    def _note_trouble(self, error: ClusterUnreachable) -> None:
        if not isinstance(error, NotServed):
            self._is_reachable = False
            self._wanted.set()

    async def ask_coordinator(
        self, group_id: str, request: ClientRequest, *, timeout_ms: int = 30_000
    ) -> Any:
        return await self._coordinators.ask(group_id, request, timeout_ms)

    async def find_coordinator(
        self, group_id: str, *, again: bool = False, timeout_ms: int = 30_000
    ) -> int:
        return await self._coordinators.find(group_id, again=again, timeout_ms=timeout_ms)

    async def open_link(self, node_id: int) -> OwnLink:
        self._check_fault()
        broker = self._find_broker(node_id)
        connection = await self._opener.open(broker.host, broker.port)
        return OwnLink(connection, f"{broker.host}:{broker.port}", self._settings)

    async def open_raw(self, node_id: int | None) -> StreamLink:
        self._check_fault()
        if node_id is None:
            node_id = self._peers.choose()
        broker = self._find_broker(node_id)
        streams = await self._opener.open_streams(broker.host, broker.port, for_others=True)
        return StreamLink(*streams, self._settings)

    def _find_broker(self, node_id: int | None) -> ClusterBroker:
        broker = self.brokers.get(-1 if node_id is None else node_id)
        if broker is None:
            self._wanted.set()
            raise NotSent(f"the cluster has no broker {node_id}")
        return broker

    async def refresh(self) -> None:
        """Read brokers and controller anew. Raises ``ClusterUnreachable``."""
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(self._note_refreshed)
        refreshing = self._refreshing
        try:
            await asyncio.shield(refreshing)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if refreshing.cancelled() and task is not None and not task.cancelling():
                raise NotSent("the client was stopped") from None
            raise

    async def _refresh(self) -> None:
        answer = await self._ask_any(NO_TOPICS, self._settings.request_timeout_ms)
        image = compute_image(answer)
        if getattr(answer, "error_code", 0) or not image.brokers:
            raise ClusterUnreachable("a broker does not know the cluster's brokers yet")
        known = self.cluster_id
        if not (known and image.cluster_id):
            # Some brokers say no id, or not always.
            image = replace(image, cluster_id=known or image.cluster_id)
        elif image.cluster_id != known:
            self._fault = (
                f"the brokers at the known addresses are of cluster {image.cluster_id}, and were "
                f"of {known}: set upstream.bootstrap.servers, and restart"
            )
            log.error("upstream-changed", fault=self._fault)
            self._peers.close()
            return
        if self._peers.replace(image):
            for callback in self._callbacks:
                # On its own: what fails there must not end the following.
                asyncio.get_running_loop().call_soon(callback)
        self._peers.warm()

    def _note_refreshed(self, refreshing: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not refreshing.cancelled() and refreshing.exception() is not None:
            log.debug("upstream-not-refreshed", error=str(refreshing.exception()))

    async def _follow(self) -> None:
        """Refresh every few seconds, and soon after any trouble."""
        while self._fault is None:
            try:
                async with asyncio.timeout(self._settings.refresh_ms / 1_000):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                await self.refresh()
            except ClusterUnreachable:
                self._wanted.set()
            await asyncio.sleep(_REFRESH_PAUSE_S)
