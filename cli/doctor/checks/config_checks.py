"""The settings: every fault that can be known before a start, one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from cli.errors import CommandError
from cli.serve.fronting.cluster_access import compute_cluster_settings
from cli.settings import Resolved, SettingsError
from cli.settings.settings_objects import compute_settings_object
from cli.settings.tables.upstream_table import BOOTSTRAP
from coordinator.runtime.audit import NO_AUDIT
from coordinator.runtime.targets.custom_assignors import AssignorNotFound, load_assignors
from coordinator.service.settings import GrpcSettings
from gateway.settings import GatewaySettings
from gateway.topics.settings import TopicSettings
from model.configs.coordinator_settings import CoordinatorSettings
from security.quotas.settings import QuotaSettings

_REMEDY = "change it; `muster config show --origin` says where each value comes from"


def describe_mistakes(error: SettingsError) -> Iterator[Finding]:
    """The mistakes that keep the settings from being read at all."""
    for line in error.lines:
        yield fail(line, _REMEDY)


def check_config(subject: Subject) -> Iterator[Finding]:
    """What is set, what of it has no effect, and what the parts of a server do not take."""
    resolved = subject.resolved
    faults = [line for check in _CHECKS for line in _find_faults(check, resolved)]
    for line in faults:
        yield fail(line, _REMEDY)
    for line in resolved.warnings:
        yield warn(line, "take them out, or look for what Muster has instead: docs/settings.md")
    for line in resolved.exposed:
        what, _, remedy = line.rpartition(": ")
        yield warn(what, remedy)
    if resolved.values["allow.unauthenticated"]:
        yield warn(
            "allow.unauthenticated is set: whoever reaches a listener may do everything there",
            "use SASL_SSL, or SSL with ssl.client.auth=required (docs/security.md)",
        )
    if not faults:
        chosen = sum(origin.source != "default" for origin in resolved.origins.values())
        yield ok(f"{chosen} settings differ from their defaults, and a server takes them")


def _find_faults(check: Callable[[Resolved], object], resolved: Resolved) -> list[str]:
    try:
        check(resolved)
    except SettingsError as error:
        return list(error.lines)
    except CommandError as error:
        return error.message.splitlines()
    return []


def _takes(settings: type[Any]) -> Callable[[Resolved], object]:
    return lambda resolved: compute_settings_object(settings, resolved)


def _load_assignors(resolved: Resolved) -> None:
    settings = compute_settings_object(CoordinatorSettings, resolved)
    try:
        load_assignors(settings.group_consumer_assignors)
    except AssignorNotFound as error:
        raise CommandError(str(error)) from error


def _make_authorizer(resolved: Resolved) -> None:
    from cli.serve.access import make_authorizer

    make_authorizer(resolved, NO_AUDIT)


def _make_sasl(resolved: Resolved) -> None:
    """Users of PLAIN, keys of tokens: what SASL of each listener is made of."""
    from cli.serve.doors.sasl import SaslSetup
    from cli.settings.listeners.listener_rules import compute_listener_plan

    if resolved.values[BOOTSTRAP] is not None:
        # Its clients show the cluster who they are.
        return
    sasl = SaslSetup(resolved)
    lines: list[str] = []
    for endpoint in compute_listener_plan(resolved.values).endpoints:
        if endpoint.protocol.uses_sasl:
            try:
                sasl.make_sasl(endpoint)
            except SettingsError as error:
                lines += error.lines
    if lines:
        raise SettingsError(lines)


def _find_cluster(resolved: Resolved) -> None:
    if resolved.values[BOOTSTRAP] is not None:
        compute_cluster_settings(resolved)


_CHECKS = (
    _takes(CoordinatorSettings),
    _takes(GatewaySettings),
    _takes(GrpcSettings),
    _takes(TopicSettings),
    _takes(QuotaSettings),
    _load_assignors,
    _make_authorizer,
    _make_sasl,
    _find_cluster,
)
