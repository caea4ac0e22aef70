"""`muster upstream release --bootstrap-servers`: gives groups back without a running server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cli.asking import ask, raise_failures
from cli.errors import CommandError, ExitCode
from cli.settings.setting import parse_address
from cli.upstream.upstream_listings import REPORT_COLUMNS, compute_failures, compute_reports
from coordinator.service.wire.error_statuses import encode_error
from model.errors import ErrorCode
from muster.v1 import upstream_pb2
from security.client.client_security import (
    ClientSecurity,
    ClientSecurityFault,
    compute_client_security,
)
from security.client.config_providers import ProviderError, read_client_properties_file
from upstream.cluster.cluster import ClusterUnreachable
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.start_checks import UpstreamFault
from upstream.takeover.release_alone import AloneRelease
from upstream.takeover.release_alone import release_alone as release_from_cluster

_EFFECT = (
    "Muster's place in these groups will be removed: stock clients can join them again. Only do "
    "this if no Muster runs that has them."
)

_LISTEN_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for; without ``names`` all groups that a Muster has."""

    names: Sequence[str]
    servers: str
    command_config: Path | None
    timeout_s: float
    yes: bool
    dry_run: bool


def release_alone(asked: Asked) -> list[upstream_pb2.GroupReport]:
    """Release the groups; a report for each. Raises ``CommandError``."""
    settings = compute_settings(asked.servers, asked.command_config, asked.timeout_s)
    return asyncio.run(_release(asked, settings))


async def _release(asked: Asked, settings: ClusterSettings) -> list[upstream_pb2.GroupReport]:
    try:
        async with asyncio.timeout(asked.timeout_s):
            cluster = ClusterClient(settings)
            await cluster.start()
    except TimeoutError as error:
        said = f"{asked.servers} did not answer within {asked.timeout_s:g} s"
        raise CommandError(said, ExitCode.UNREACHABLE) from error
    except UpstreamFault as fault:
        raise CommandError(str(fault), ExitCode.UNREACHABLE) from fault
    try:
        found = await release_from_cluster(cluster, asked.names or None, dry_run=True)
        found = [await _check_gone(each) for each in found]
        if asked.dry_run:
            return [encode_release(each, is_done=False) for each in found]
        if not asked.yes:
            _ask([encode_release(each, is_done=False) for each in found])
        left = [each.group_id for each in found if each.is_released]
        done = await release_from_cluster(cluster, left, dry_run=False)
        refused = [each for each in found if not each.is_released]
        return [encode_release(each, is_done=True) for each in (*done, *refused)]
    except ClusterUnreachable as error:
        said = f"the cluster did not answer: {error}"
        raise CommandError(said, ExitCode.UNREACHABLE) from error
    finally:
        await cluster.stop()


async def _check_gone(found: AloneRelease) -> AloneRelease:
    """Refuse a group whose Muster accepts connections: it would take the group again."""
    sign = found.sign
    if sign is None or not found.is_released:
        return found
    try:
        async with asyncio.timeout(_LISTEN_TIMEOUT_S):
            _, writer = await asyncio.open_connection(sign.host, sign.port)
    except (OSError, TimeoutError, UnicodeError):
        return found
    writer.close()
    said = f"Muster at {sign.host}:{sign.port} has the group and is running: release it there"
    return replace(found, is_released=False, error=said)


def _ask(reports: Sequence[upstream_pb2.GroupReport]) -> None:
    failures = compute_failures(reports)
    if len(failures) == len(reports):
        raise_failures(failures)
    if reports:
        ask(REPORT_COLUMNS, compute_reports("", reports).rows, _EFFECT)


def encode_release(found: AloneRelease, *, is_done: bool) -> upstream_pb2.GroupReport:
    """A report as a server would give it."""
    is_upstream = found.sign is None if not found.is_released else is_done
    place = upstream_pb2.GROUP_PLACE_UPSTREAM if is_upstream else upstream_pb2.GROUP_PLACE_MUSTER
    group = upstream_pb2.UpstreamGroup(group_id=found.group_id, place=place)
    report = upstream_pb2.GroupReport(group=group)
    if found.error:
        code = ErrorCode.GROUP_ID_NOT_FOUND if found.sign is None else ErrorCode.POLICY_VIOLATION
        report.error.CopyFrom(encode_error(code, found.error))
    return report


def compute_settings(
    servers: str, command_config: Path | None, timeout_s: float
) -> ClusterSettings:
    """How the cluster is reached. Raises ``CommandError``."""
    try:
        addresses = [parse_address(server) for server in servers.split(",")]
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    timeout_ms = max(int(timeout_s * 1_000), 1)
    return ClusterSettings(
        tuple((each.host, each.port) for each in addresses if each is not None),
        _read_security(command_config),
        connect_timeout_ms=min(timeout_ms, 10_000),
        request_timeout_ms=min(timeout_ms, 30_000),
    )


def _read_security(command_config: Path | None) -> ClientSecurity:
    if command_config is None:
        return ClientSecurity()
    try:
        security = compute_client_security(read_client_properties_file(command_config, os.environ))
        security.check()
    except (OSError, ProviderError) as error:
        raise CommandError(f"cannot read {command_config}: {error}", ExitCode.USAGE) from error
    except ClientSecurityFault as fault:
        raise CommandError(f"{command_config}: {fault}", ExitCode.USAGE) from fault
    return security
