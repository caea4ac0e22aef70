"""Kafka and Muster with two listeners each, one plain and one with TLS, and the same certificate.

Plain and TLS are two addresses of one process, so that both figures are of the same server in the
same state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peer import WARM_UP_S, run_kload, start_kafka, warm_up
from bench.stand import MUSTER_WARM_UP_S, Server, serve
from tests.kafka.broker import HOST
from tests.support.certificates import Authority

CERTIFICATE = "ECDSA P-256"
"""The kind of key that `Authority` makes."""

_TLS = "SSL"
_CONNECTS_S = 6.0
"""A JVM compiles what a handshake computes after some thousand of them."""
_MUSTER_CONNECTS_S = 1.0


@dataclass(frozen=True, slots=True)
class Keys:
    """The file of key and certificate that both servers have, and what clients trust."""

    keystore: Path
    trusted: Path


@dataclass(frozen=True, slots=True)
class Secured:
    """A server by its plain address and by that with TLS."""

    plain: Server
    tls: Server


@contextmanager
def serve_kafka(keys: Keys) -> Iterator[Secured]:
    """A broker, warmed up on both addresses."""
    with start_kafka(make_settings(keys), listeners={_TLS: _TLS}) as broker:
        both = _pair("Kafka", broker.bootstrap, broker.address(_TLS), broker.pid, keys)
        _warm_up(both, WARM_UP_S, _CONNECTS_S)
        yield both


@contextmanager
def serve_muster(keys: Keys) -> Iterator[Secured]:
    """A Muster, warmed up on both addresses."""
    listen = {"listen.kafka": f"PLAINTEXT://{HOST}:0,{_TLS}://{HOST}:0"}
    with serve({**listen, **make_settings(keys)}) as server:
        both = _pair("Muster", server.kafka, server.endpoints[_TLS], server.pid, keys)
        _warm_up(both, MUSTER_WARM_UP_S, _MUSTER_CONNECTS_S)
        yield both


def make_keys(folder: Path) -> Keys:
    """New ones, in a folder that is there."""
    authority = Authority(folder)
    return Keys(authority.issue("server").both, authority.file)


def make_settings(keys: Keys) -> dict[str, str]:
    """What makes a listener of either server one with TLS, in Kafka's words; 1.3 is the default."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.keystore),
        "ssl.client.auth": "none",
    }


def _pair(name: str, plain: str, tls: str, pid: int, keys: Keys) -> Secured:
    security: Mapping[str, object] = {"tls_ca": keys.trusted}
    return Secured(Server(name, plain, pid), Server(name, tls, pid, security=security))


def _warm_up(both: Secured, seconds: float, connects_s: float) -> None:
    for server in (both.plain, both.tls):
        warm_up(server.bootstrap, seconds, **server.security)
        run_kload("connects", server.bootstrap, seconds=connects_s, **server.security)
