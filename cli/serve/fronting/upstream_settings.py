"""The settings of the parts of a server in front of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import re2

from cli.serve.fronting.own_address import compute_own_address
from cli.settings import Address, Resolved
from cli.settings.listeners.listener_rules import compute_listener_plan
from cli.settings.setting import parse_address
from cli.settings.tables.security_table import parse_super_users
from cli.settings.tables.upstream_table import (
    PREFIX,
    RELAY_PORTS,
    STANDBY_NODES,
    TAKEOVER_GROUPS,
)
from cli.settings.upstream_rules import parse_relay_ports
from security.client.client_security import ClientSecurity
from security.endpoints import Endpoint
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.rights.acl_mirror import AclMirrorSettings
from upstream.rights.exceptions import Exceptions

OFFSETS_HERE: Final = "muster"


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """What the settings say of the cluster behind. ``pattern`` matches groups to take over."""

    cluster: ClusterSettings
    listener: Endpoint
    own: Address
    ports: range
    pattern: Any
    others: tuple[Address, ...]
    keeps_offsets: bool
    session_timeout_ms: int
    metadata_interval_ms: int
    acls: AclMirrorSettings

    @property
    def passes_anonymous(self) -> bool:
        """Whether who did not log in may be passed on to the cluster.

        There such a client is as nobody else: a connection of Muster's own shows no certificate.
        """
        security = self.cluster.security
        return not security.protocol.uses_sasl and security.tls.keystore_location is None


def compute_upstream_settings(resolved: Resolved, cluster: ClusterSettings) -> UpstreamSettings:
    """The settings have passed their rules (``cli.settings.upstream_rules``)."""
    pattern = resolved.values[TAKEOVER_GROUPS]
    listener = compute_listener_plan(resolved.values).endpoints[0]
    exceptions = Exceptions(
        parse_super_users(str(resolved.values["super.users"] or "")),
        bool(resolved.values["allow.everyone.if.no.acl.found"]),
    )
    return UpstreamSettings(
        cluster,
        listener,
        compute_own_address(listener),
        parse_relay_ports(str(resolved.values[RELAY_PORTS])),
        None if pattern is None else re2.compile(str(pattern)),
        _compute_addresses(resolved, STANDBY_NODES),
        resolved.values[f"{PREFIX}offsets.store"] == OFFSETS_HERE,
        resolved.integer(f"{PREFIX}sentinel.session.timeout.ms"),
        resolved.integer(f"{PREFIX}metadata.interval.ms"),
        AclMirrorSettings(
            compute_identity(cluster.security),
            exceptions,
            parse_super_users,
            interval_ms=resolved.integer(f"{PREFIX}acls.interval.ms"),
        ),
    )


def _compute_addresses(resolved: Resolved, name: str) -> tuple[Address, ...]:
    found = (parse_address(str(each)) for each in _compute_texts(resolved, name))
    return tuple(each for each in found if each is not None)


def _compute_texts(resolved: Resolved, name: str) -> tuple[object, ...]:
    value = resolved.values[name]
    return value if isinstance(value, tuple) else ()


def compute_identity(security: ClientSecurity) -> str:
    """Who Muster is for the cluster, as far as it can tell."""
    if security.username:
        return f"User:{security.username}"
    if security.protocol.uses_sasl:
        return "whom its token names"
    if security.tls.keystore_location is not None:
        return "whom its certificate names"
    return "User:ANONYMOUS"
