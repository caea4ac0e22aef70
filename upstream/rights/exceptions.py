"""Who needs no ACL in the cluster: ``super.users`` and ``allow.everyone.if.no.acl.found``.

These are settings of the brokers. Kafka shows the values of an authorizer's settings to nobody, as
it does not know which are secret; what a broker does show is used in place of Muster's settings.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from upstream.cluster.cluster import Cluster

_DESCRIBE_CONFIGS: Final = 32
_BROKER: Final = 4
_SUPER_USERS: Final = "super.users"
_WITHOUT_ACL: Final = "allow.everyone.if.no.acl.found"


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Who is not asked for an ACL, and whether what no ACL is about is open to all."""

    super_users: frozenset[str] = frozenset()
    allows_without_acl: bool = False


async def find_exceptions(
    cluster: Cluster,
    own: Exceptions,
    parse_super_users: Callable[[str], frozenset[str]],
    timeout_ms: int,
) -> Exceptions:
    """What a broker shows, and ``own`` for the rest. Raises ``ClusterUnreachable``."""
    node_id = min(cluster.brokers, default=None)
    if node_id is None:
        return own
    resource = {
        "resource_type": _BROKER,
        "resource_name": str(node_id),
        "configuration_keys": (_SUPER_USERS, _WITHOUT_ACL),
    }
    request = ClientRequest(_DESCRIBE_CONFIGS, {"resources": (resource,)})
    answer = await cluster.ask(request, node_id=node_id, timeout_ms=timeout_ms)
    shown = _read(answer)
    found = own
    if (text := shown.get(_SUPER_USERS)) is not None:
        with suppress(ValueError):
            found = replace(found, super_users=parse_super_users(text))
    if (flag := shown.get(_WITHOUT_ACL)) is not None:
        found = replace(found, allows_without_acl=flag.strip().lower() == "true")
    return found


def _read(answer: Any) -> dict[str, str]:
    return {
        each.name: each.value
        for result in answer.results
        if result.error_code == ErrorCode.NONE.value
        for each in result.configs
        if each.value is not None and not each.is_sensitive
    }
