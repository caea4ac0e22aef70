"""Is a server of the Kafka wire ready to be used?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.wire.blocking import Client

METADATA, FIND_COORDINATOR = 3, 10
_METADATA_VERSION = 9
"""Every release that tests run has it."""
_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Brokers:
    """What Metadata says of a cluster: without an answer there are none."""

    ids: frozenset[int] = frozenset()
    controller: int = -1


def lists_brokers(host: str, port: int) -> bool:
    """Whether the server answers, and a broker is listed in its metadata.

    A Kafka broker accepts connections, and even answers, before its controller lists it; topics
    that are created then get no leader.
    """
    return bool(fetch_brokers(host, port).ids)


def fetch_brokers(host: str, port: int) -> Brokers:
    """The brokers that a server names; none where it does not answer."""
    fields: dict[str, Any] = {
        "topics": [],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    try:
        with Client((host, port), timeout_s=_WITHIN_S) as client:
            answer = client.ask(METADATA, _METADATA_VERSION, **fields)
    except OSError:
        return Brokers()
    ids = frozenset(int(broker.node_id) for broker in answer.brokers)
    return Brokers(ids, int(answer.controller_id))


def fetch_coordinator(host: str, port: int, group: str) -> int:
    """The node id of a group's coordinator; negative where there is none yet."""
    try:
        with Client((host, port), timeout_s=_WITHIN_S) as client:
            answer = client.ask(FIND_COORDINATOR, 3, key=group, key_type=0)
    except OSError:
        return -1
    return int(answer.node_id)
