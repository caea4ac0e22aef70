"""What a check says: one line, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a check came out. Only ``FAIL`` means that a server would not start or not serve."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result. ``remedy`` says what to do, and is empty for what is right."""

    level: Level
    what: str
    remedy: str = ""


def ok(what: str) -> Finding:
    """Nothing to do."""
    return Finding(Level.OK, what)


def warn(what: str, remedy: str) -> Finding:
    """A server would serve, but not as well as it could, or not for long."""
    return Finding(Level.WARN, what, remedy)


def fail(what: str, remedy: str) -> Finding:
    """A server would not start, or would lose or expose something."""
    return Finding(Level.FAIL, what, remedy)
