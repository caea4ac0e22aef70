"""The cluster that Muster is to stand in front of: whether it answers, and what Muster may do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from cli.errors import CommandError
from cli.serve.fronting.cluster_access import compute_cluster_settings
from cli.settings import Resolved
from cli.settings.tables.upstream_table import BOOTSTRAP, RELAY_PORTS
from cli.settings.upstream_rules import parse_relay_ports
from gateway.codec.client_frames import ClientRequest, api_name
from model.access.acl_codes import OPERATION_CODES
from model.access.acls import Operation
from model.errors import ErrorCode
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.start_checks import UpstreamFault
from upstream.takeover.asking.group_listing import list_groups

LIMIT_S: Final = 30.0
"""All of this together; a broker that does not answer takes ``CONNECT_TIMEOUT_MAX_MS``."""
_ASK_TIMEOUT_MS: Final = 10_000
_METADATA, _DESCRIBE_GROUPS, _DESCRIBE_ACLS = 3, 15, 29
_GROUPS_MAX: Final = 500
"""Groups that are looked at in a cluster that has more."""
_NAMES_SHOWN: Final = 3
_UNSAID: Final = -(2**31)
"""The brokers do not say what the caller may do (KIP-430)."""
_ANY_ACL: Final = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_NO_AUTHORIZER: Final = (ErrorCode.NONE, ErrorCode.SECURITY_DISABLED)


def check_upstream(subject: Subject) -> Iterator[Finding]:
    """Reachability, versions and rights, asked by Muster's own identity."""
    resolved = subject.resolved
    if resolved.values[BOOTSTRAP] is None:
        yield ok("no cluster stands behind (upstream.bootstrap.servers)")
        return
    yield from asyncio.run(_examine(resolved, subject))


async def _examine(resolved: Resolved, subject: Subject) -> list[Finding]:
    try:
        cluster = ClusterClient(compute_cluster_settings(resolved))
        await cluster.start()
    except (UpstreamFault, CommandError) as fault:
        return [fail(str(fault), "then run this again")]
    try:
        found = [_describe_cluster(cluster, resolved), *_check_same(cluster, subject)]
        found += _describe_protocols(cluster)
        for ask in (_check_acls, _check_topics, _check_groups):
            try:
                found.append(await ask(cluster))
            except ClusterUnreachable as error:
                found.append(fail(f"the cluster did not answer: {error}", "look at its brokers"))
        return found
    finally:
        await cluster.stop()


def _describe_cluster(cluster: Cluster, resolved: Resolved) -> Finding:
    count = len(cluster.brokers)
    what = f"the cluster {cluster.cluster_id} answers, all {count} of its brokers"
    ports = resolved.values[RELAY_PORTS]
    relays = len(parse_relay_ports(ports)) if isinstance(ports, str) else 0
    if relays < count:
        return fail(
            f"{what}, and there are {relays} relay ports",
            f"set {RELAY_PORTS} to {count} ports or more",
        )
    return ok(what)


def _check_same(cluster: Cluster, subject: Subject) -> list[Finding]:
    """A data folder belongs to one cluster."""
    try:
        known = subject.folder.upstream.read_text(encoding="utf-8").strip()
    except OSError:
        return []
    if known in ("", cluster.cluster_id):
        return []
    return [
        fail(
            f"the data folder belongs to the cluster {known}",
            "use another data.dir, or the brokers of that cluster",
        )
    ]


def _describe_protocols(cluster: Cluster) -> list[Finding]:
    if cluster.has_consumer_protocol:
        return [
            warn(
                "the cluster has the consumer protocol itself",
                "Muster works in front of it, and is not needed for KIP-848",
            )
        ]
    served = cluster.versions.get(_METADATA)
    newest = f"{api_name(_METADATA)} {served[-1]}" if served else "no Metadata"
    if not cluster.offers_consumer_protocol:
        return [
            warn(
                f"the brokers are older than Kafka 3.1 ({newest}): groups stay classic",
                "upgrade them for members of the consumer protocol",
            )
        ]
    return [ok(f"the brokers serve what the consumer protocol needs ({newest})")]


async def _check_acls(cluster: Cluster) -> Finding:
    answer: Any = await cluster.ask(
        ClientRequest(_DESCRIBE_ACLS, _ANY_ACL), timeout_ms=_ASK_TIMEOUT_MS
    )
    if answer.error_code in _NO_AUTHORIZER:
        return ok("it shows its ACLs")
    return fail(
        f"it does not show its ACLs ({ErrorCode(answer.error_code).name})",
        "give Muster DESCRIBE on the cluster: kafka-acls --add --operation Describe --cluster",
    )


async def _check_topics(cluster: Cluster) -> Finding:
    fields = {
        "topics": None,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
    }
    answer: Any = await cluster.ask(ClientRequest(_METADATA, fields), timeout_ms=_ASK_TIMEOUT_MS)
    topics = [topic for topic in answer.topics if not topic.is_internal]
    lacking = [
        str(topic.name)
        for topic in topics
        if _lacks_read(getattr(topic, "topic_authorized_operations", _UNSAID))
    ]
    return _describe_rights("topic", [str(topic.name) for topic in topics], lacking)


async def _check_groups(cluster: Cluster) -> Finding:
    group_ids = (await list_groups(cluster))[:_GROUPS_MAX]
    if not group_ids or _DESCRIBE_GROUPS not in cluster.versions:
        return ok("it has no groups yet")
    lacking = []
    for group_id in group_ids:
        fields = {"groups": [group_id], "include_authorized_operations": True}
        answer: Any = await cluster.ask_coordinator(
            group_id, ClientRequest(_DESCRIBE_GROUPS, fields), timeout_ms=_ASK_TIMEOUT_MS
        )
        (group,) = answer.groups
        if _lacks_read(getattr(group, "authorized_operations", _UNSAID)):
            lacking.append(group_id)
    return _describe_rights("group", group_ids, lacking)


def _lacks_read(operations: int) -> bool:
    return operations != _UNSAID and not operations & (1 << OPERATION_CODES[Operation.READ])


def _describe_rights(kind: str, names: list[str], lacking: list[str]) -> Finding:
    if not lacking:
        return ok(f"it lets Muster read the {len(names)} {kind}s that it shows")
    shown = ", ".join(lacking[:_NAMES_SHOWN]) + (", …" if len(lacking) > _NAMES_SHOWN else "")
    return warn(
        f"Muster may not read {len(lacking)} of {len(names)} {kind}s that it sees: {shown}",
        f"for groups that are to be taken over: kafka-acls --add --operation Read --{kind} NAME",
    )
