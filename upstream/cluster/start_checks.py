"""What is checked at the start: each trouble is one line that says what is wrong and what to do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

from security.client.client_security import ClientSecurity
from upstream.cluster.cluster import ClusterUnreachable
from upstream.cluster.connections.opening import Opener
from upstream.cluster.connections.opening_faults import OpeningFault, Trouble
from upstream.cluster.metadata import METADATA, NO_TOPICS, ClusterImage, compute_image
from upstream.cluster.peer import Peer

MUSTER_NODE_IDS: Final = range(1 << 30, (1 << 30) + 1_000_000)
"""The node ids of Musters in front of a cluster: its Metadata names its own node."""

_TRANSACTIONS_HERE: Final = frozenset({22, 27, 28})
"""InitProducerId, WriteTxnMarkers, TxnOffsetCommit: these Muster serves,"""
_TRANSACTIONS_ELSEWHERE: Final = frozenset({24, 25, 26})
"""and not AddPartitionsToTxn, AddOffsetsToTxn, EndTxn; brokers serve all of them or none."""

_PROTOCOL: Final = "upstream.security.protocol"
_TO_DO: Final = {
    Trouble.NO_ANSWER: "check upstream.bootstrap.servers, and that the brokers run",
    Trouble.CLOSED: (
        f"it closes the connection at the first request: check that it is a Kafka broker, and "
        f"{_PROTOCOL}"
    ),
    Trouble.NOT_KAFKA: (
        "it is not a Kafka broker, or this is not its port for clients: check "
        "upstream.bootstrap.servers"
    ),
    Trouble.TLS_WANTED: f"set {_PROTOCOL} to SSL or SASL_SSL",
    Trouble.NO_TLS: f"it does not speak TLS there: check the port and {_PROTOCOL}",
    Trouble.UNTRUSTED: (
        "check upstream.ssl.truststore.location, upstream.ssl.keystore.location, and that the "
        "certificate has the broker's host name"
    ),
    Trouble.SASL_WANTED: (
        f"it wants a login: set {_PROTOCOL} to SASL_SSL or SASL_PLAINTEXT, and upstream.sasl.*"
    ),
    Trouble.NO_SASL: f"check {_PROTOCOL} and upstream.sasl.mechanism",
    Trouble.NOT_AUTHENTICATED: "check upstream.sasl.mechanism and Muster's own credentials",
}
_MOST_TELLING: Final = (
    Trouble.NOT_AUTHENTICATED,
    Trouble.SASL_WANTED,
    Trouble.NO_SASL,
    Trouble.UNTRUSTED,
    Trouble.TLS_WANTED,
    Trouble.NO_TLS,
    Trouble.CLOSED,
    Trouble.NOT_KAFKA,
    Trouble.NO_ANSWER,
)


class UpstreamFault(Exception):
    """The cluster cannot be used; one line says what is wrong and what to do."""


async def find_cluster(opener: Opener, bootstrap: Sequence[Peer]) -> ClusterImage:
    """The cluster that the first address with an answer belongs to. Raises ``UpstreamFault``."""
    failures: list[tuple[Peer, OpeningFault]] = []
    for peer in bootstrap:
        try:
            return await _ask_image(opener, peer)
        except OpeningFault as error:
            failures.append((peer, error))
    for trouble in _MOST_TELLING:
        for peer, fault in failures:
            if fault.trouble is trouble:
                raise await _describe(opener, peer, fault)
    raise UpstreamFault("upstream.bootstrap.servers names no broker: set HOST:PORT,HOST:PORT")


async def _ask_image(opener: Opener, peer: Peer) -> ClusterImage:
    connection = await peer.connect()
    _check_served(peer, connection.versions)
    try:
        answer: Any = await connection.ask(NO_TOPICS, opener.settings.connect_timeout_ms)
    except ClusterUnreachable as error:
        is_unanswered = isinstance(connection.trouble, TimeoutError | None)
        trouble = Trouble.NO_ANSWER if is_unanswered else Trouble.CLOSED
        if trouble is Trouble.CLOSED and not opener.settings.security.protocol.uses_sasl:
            # A listener with SASL answers ApiVersions alone before a login.
            trouble = Trouble.SASL_WANTED
        raise OpeningFault(trouble, f"{peer}: {error}") from None
    return compute_image(answer)


def _check_served(peer: Peer, versions: Mapping[int, range]) -> None:
    if versions.keys() >= _TRANSACTIONS_HERE and not _TRANSACTIONS_ELSEWHERE & versions.keys():
        raise UpstreamFault(_muster_fault(str(peer)))
    if METADATA not in versions:
        raise OpeningFault(Trouble.NOT_KAFKA, f"{peer} does not serve Metadata")
    if versions[METADATA][-1] < 2:
        raise UpstreamFault(f"{peer} is older than Kafka 0.10.1: no version of it is supported")


def _muster_fault(where: str) -> str:
    return (
        f"{where} is a Muster, this one or another: set upstream.bootstrap.servers to brokers of "
        f"the cluster itself"
    )


def check_image(image: ClusterImage) -> None:
    """Raise ``UpstreamFault`` if the cluster is not one to stand in front of."""
    if not image.brokers:
        raise UpstreamFault("the cluster names no broker yet: wait until it is ready")
    for broker in image.brokers.values():
        if broker.node_id in MUSTER_NODE_IDS:
            raise UpstreamFault(_muster_fault(f"{broker.host}:{broker.port}"))


def check_brokers(failures: Sequence[BaseException], versions: Mapping[int, range]) -> None:
    """Raise ``UpstreamFault`` if no broker that the cluster names can be used."""
    if not versions:
        said = failures[0] if failures else "no answer"
        raise UpstreamFault(
            f"the brokers that the cluster names cannot be reached ({said}): check their "
            f"advertised.listeners, and that this host can reach them"
        )


async def _describe(opener: Opener, peer: Peer, fault: OpeningFault) -> UpstreamFault:
    trouble = fault.trouble
    security: ClientSecurity = opener.settings.security
    if (
        trouble in (Trouble.CLOSED, Trouble.NOT_KAFKA)
        and not security.protocol.uses_tls
        and await _speaks_tls(peer, opener.settings.connect_timeout_ms)
    ):
        return UpstreamFault(f"{peer} speaks TLS: {_TO_DO[Trouble.TLS_WANTED]}")
    return UpstreamFault(f"{fault}: {_TO_DO[trouble]}")


async def _speaks_tls(peer: Peer, timeout_ms: int) -> bool:
    """Whether a TLS handshake gets as far as a certificate: brokers just close on other bytes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_ms / 1_000):
            _, writer = await asyncio.open_connection(peer.host, peer.port, ssl=context)
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return True
