"""The state of a group, as who asks its coordinator is told.

librdkafka's admin client is not asked: where FindCoordinator fails three times it is silent for
60 s, and where brokers lack ConsumerGroupDescribe it ends the process now and then, by an assertion
(`rd_kafka_enq_once_del_source_return`).
"""

from __future__ import annotations

from typing import Final

from tests.support.wire.blocking import Client

FIND_COORDINATOR, DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE = 10, 15, 69
STABLE: Final = "Stable"
_WITHIN_S: Final = 20.0
_NO_NEW_PROTOCOL: Final = ("", "Dead")
"""What DescribeGroups says of groups that are not its own."""


def fetch_state(bootstrap: str, group: str) -> str:
    """Kafka's word, `Stable` for one; empty where nobody can say at the moment."""
    first, *_ = bootstrap.split(",")
    try:
        with Client(_parse(first), _WITHIN_S) as client:
            found = client.ask(FIND_COORDINATOR, 3, key=group, key_type=0)
        if int(found.error_code):
            return ""
        with Client((str(found.host), int(found.port)), _WITHIN_S) as client:
            return _ask(client, group)
    except OSError:
        return ""


def _ask(client: Client, group: str) -> str:
    described = client.ask(DESCRIBE_GROUPS, 5, groups=[group]).groups[0]
    state = "" if int(described.error_code) else str(described.group_state)
    if state not in _NO_NEW_PROTOCOL:
        return state
    described = client.ask(CONSUMER_GROUP_DESCRIBE, 0, group_ids=[group]).groups[0]
    return "" if int(described.error_code) else str(described.group_state)


def _parse(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
