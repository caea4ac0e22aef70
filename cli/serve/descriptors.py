"""How many files and connections the process may have open, and what is kept back for the log.

Connections are what strangers open, and the log must always find a descriptor: a file that it
cannot open ends the process.
"""

from __future__ import annotations

import codecs
import resource
from typing import Final, NamedTuple

from gateway.connection.listening import ACCEPTED, compute_accepted
from storage.rocks.rocks_options import compute_open_files_max

CODECS: Final = ("utf-16-le", "utf-16-be")
_OTHERS: Final = 64
"""Listeners, event loops, locks, pipes of other processes, files of a backup."""
_BACKLOG_MAX: Final = 1_024
_LEAST: Final = 128
_DOORS: Final = ("max.connections", "grpc.connections.max", "http.connections.max")


class Doors(NamedTuple):
    """Connections that each door takes."""

    kafka: int
    grpc: int
    http: int


class Plan(NamedTuple):
    """What the descriptors are for.

    ``backlog``: connections that may wait to be refused. ``http_accepted``: how many of those that
    wait at HTTP are accepted in a turn; there are few of them, and mostly one at a time.
    """

    doors: Doors
    topic_files: int
    backlog: int
    http_accepted: int


class TooFewDescriptors(Exception):
    """The process may not open enough files to serve anybody."""


def load_codecs() -> None:
    """Load what is loaded with the first use: without a descriptor left it could not be."""
    for name in CODECS:
        codecs.lookup(name)


def raise_limit(needed: int) -> int:
    """Raise the soft limit of open files to ``needed``, or as far as it may be; what it is then."""
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


def compute_needed(doors: Doors, topic_files: int) -> int:
    """The limit with which nothing has to be lowered."""
    most = compute_open_files_max(resource.RLIM_INFINITY)
    accepted = ACCEPTED + _compute_http_extra(ACCEPTED)
    return sum(doors) + topic_files + most + _BACKLOG_MAX + _OTHERS + accepted


def _compute_http_extra(accepted: int) -> int:
    """Beside one socket that listens: more of them, and as many connections."""
    return 2 * (accepted - 1)


def compute_plan(limit: int, doors: Doors, topic_files: int) -> Plan:
    """What fits into ``limit``: the reserve first, the doors share the rest as they are set.

    Raises ``TooFewDescriptors``.
    """
    if limit < _LEAST:
        raise TooFewDescriptors(
            f"the process may open {limit} files and needs {_LEAST} at least: "
            "raise the limit (ulimit -n)"
        )
    files = min(topic_files, limit // 8)
    backlog = min(_BACKLOG_MAX, limit // 16)
    http_accepted = compute_accepted(backlog // 4)
    others = _OTHERS + compute_accepted(backlog) + _compute_http_extra(http_accepted)
    room = limit - compute_open_files_max(limit) - files - backlog - others
    wanted = sum(doors)
    if wanted > room:
        doors = Doors(*(min(each, max(each * room // wanted, 1)) for each in doors))
    return Plan(doors, files, backlog, http_accepted)


def describe_lowered(limit: int, before: Doors, after: Doors) -> str | None:
    """One line where doors take less than they are set to; ``None`` where they do not."""
    lowered = [
        f"{name} {old} to {new}"
        for name, old, new in zip(_DOORS, before, after, strict=True)
        if new < old
    ]
    if not lowered:
        return None
    return f"the process may open {limit} files (ulimit -n): lowered {', '.join(lowered)}"
