"""Shares the process's file descriptors between connections and the log.

Clients can open any number of connections, but the log must always get a descriptor: a file that
it cannot open ends the process.
"""

from __future__ import annotations

import codecs
import resource
from typing import Final, NamedTuple

from gateway.connection.listener import ACCEPTED, compute_accepted
from storage.rocks.rocks_options import compute_open_files_max

CODECS: Final = ("utf-16-le", "utf-16-be")
_OTHERS: Final = 64
"""For listeners, event loops, locks, pipes of child processes, and files of a backup."""
_BACKLOG_MAX: Final = 1_024
_LEAST: Final = 128
_LIMIT_SETTINGS: Final = ("max.connections", "grpc.connections.max", "http.connections.max")


class ConnectionLimits(NamedTuple):
    """Maximum connections of each listener."""

    kafka: int
    grpc: int
    http: int


class Plan(NamedTuple):
    """How the descriptors are used.

    ``backlog``: connections that may wait to be refused. ``http_accepted``: connections that the
    HTTP listener accepts in one iteration of the event loop; it has few, mostly one at a time.
    """

    limits: ConnectionLimits
    topic_files: int
    backlog: int
    http_accepted: int


class TooFewDescriptors(Exception):
    """The process may not open enough files to serve any client."""


def load_codecs() -> None:
    """Load what Python loads on first use: without a free descriptor it could not."""
    for name in CODECS:
        codecs.lookup(name)


def raise_limit(needed: int) -> int:
    """Raise the soft limit of open files towards ``needed``; return the resulting limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    infinite = resource.RLIM_INFINITY
    if soft == infinite:
        return needed
    wanted = needed if hard == infinite else min(needed, hard)
    if wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
        return wanted
    return soft


def compute_needed(limits: ConnectionLimits, topic_files: int, listeners: int = 1) -> int:
    """The limit at which no setting has to be lowered, with so many listeners of Kafka's wire."""
    most = compute_open_files_max(resource.RLIM_INFINITY)
    accepted = listeners * ACCEPTED + _compute_http_extra(ACCEPTED)
    return sum(limits) + topic_files + most + _BACKLOG_MAX + _OTHERS + accepted


def _compute_http_extra(accepted: int) -> int:
    """Extra descriptors of the HTTP listener: its additional sockets, and as many connections."""
    return 2 * (accepted - 1)


def compute_plan(
    limit: int, limits: ConnectionLimits, topic_files: int, listeners: int = 1
) -> Plan:
    """Divide ``limit``: the log's reserve first, then the listeners in proportion to their maxima.

    Raises ``TooFewDescriptors``.
    """
    if limit < _LEAST:
        raise TooFewDescriptors(
            f"the process may open {limit} files but needs at least {_LEAST}: "
            "raise the limit (ulimit -n)"
        )
    files = min(topic_files, limit // 8)
    backlog = min(_BACKLOG_MAX, limit // 16)
    http_accepted = compute_accepted(backlog // 4)
    accepted = listeners * compute_accepted(backlog)
    others = _OTHERS + accepted + _compute_http_extra(http_accepted)
    available = limit - compute_open_files_max(limit) - files - backlog - others
    wanted = sum(limits)
    if wanted > available:
        limits = ConnectionLimits(
            *(min(each, max(each * available // wanted, 1)) for each in limits)
        )
    return Plan(limits, files, backlog, http_accepted)


def describe_lowered(limit: int, before: ConnectionLimits, after: ConnectionLimits) -> str | None:
    """One line about the settings that were lowered, or ``None``."""
    lowered = [
        f"{name} {old} to {new}"
        for name, old, new in zip(_LIMIT_SETTINGS, before, after, strict=True)
        if new < old
    ]
    if not lowered:
        return None
    return f"the process may open {limit} files (ulimit -n): lowered {', '.join(lowered)}"
