"""How the cluster is reached, from the settings; and that it is the one of the data folder."""

from __future__ import annotations

from typing import Final

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.settings import Resolved
from cli.settings.setting import parse_address
from cli.settings.tables.upstream_table import BOOTSTRAP, PREFIX
from model.secret import Secret
from security.client.client_security import (
    ClientSecurity,
    ClientSecurityFault,
    compute_client_security,
)
from upstream.cluster.cluster_settings import ClusterSettings

CONNECT_TIMEOUT_MAX_MS: Final = 10_000

_PROPERTIES: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.location",
    "ssl.keystore.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)


def compute_cluster_settings(resolved: Resolved) -> ClusterSettings:
    """Raises ``CommandError`` for an identity that cannot be used as given."""
    servers = resolved.values[BOOTSTRAP]
    assert isinstance(servers, tuple)
    addresses = (parse_address(server) for server in servers)
    timeout_ms = resolved.integer(f"{PREFIX}request.timeout.ms")
    return ClusterSettings(
        tuple((each.host, each.port) for each in addresses if each is not None),
        _compute_security(resolved),
        connect_timeout_ms=min(timeout_ms, CONNECT_TIMEOUT_MAX_MS),
        request_timeout_ms=timeout_ms,
    )


def _compute_security(resolved: Resolved) -> ClientSecurity:
    given: dict[str, str] = {}
    for name in _PROPERTIES:
        value = resolved.values[PREFIX + name]
        if value is not None:
            given[name] = value.reveal() if isinstance(value, Secret) else str(value)
    try:
        security = compute_client_security(given)
        security.check()
    except ClientSecurityFault as fault:
        raise CommandError(f"{PREFIX}security.protocol: {fault}", ExitCode.USAGE) from None
    return security


def check_same_cluster(folder: DataFolder, cluster_id: str) -> None:
    """Note the cluster whose groups the folder has. Raises ``CommandError`` for another one.

    What is in the log of groups that were taken over is of one cluster alone.
    """
    try:
        known = folder.upstream.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        known = ""
    if not known:
        folder.upstream.write_text(cluster_id + "\n", encoding="utf-8")
    elif known != cluster_id:
        raise CommandError(
            f"{folder.path} belongs to the cluster {known}, and {BOOTSTRAP} is {cluster_id}: use "
            "another --data-dir, or the brokers of that cluster",
            ExitCode.PRECONDITION,
        )
