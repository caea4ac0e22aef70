"""A fault that was mended and is put back, and how it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.sim.broken.broken import broken
from tests.sim.campaign import Failure, run_seeds
from tests.sim.checkers.violations import focus
from tests.sim.sessions.verdicts import speaking

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PutBack:
    """``names``: the invariants of which one must be what finds it; ``seed`` is one that does,
    ``None`` where so few find it that nobody has seen one."""

    patch: Patch
    names: frozenset[str]
    seed: int | None
    kind: str

    @property
    def name(self) -> str:
        return self.patch.__name__


def make_table(*rows: PutBack) -> Mapping[str, PutBack]:
    return {row.name: row for row in rows}


@contextmanager
def put_back(row: PutBack) -> Iterator[None]:
    """The system with this fault in it, and only the checkers that are to find it."""
    with broken(row.patch), focus(*row.names), speaking(*row.names):
        yield


def find(row: PutBack, seed: int) -> Failure | None:
    """What the checkers say of a seed with the fault in it."""
    with put_back(row):
        failures = run_seeds([seed], kind=row.kind).failures
    return failures[0] if failures else None


def check_seed(row: PutBack, seed: int) -> str | None:
    """Why the seed is none to keep: it finds nothing, something else, or also the unbroken."""
    found = find(row, seed)
    if found is None:
        return "it finds nothing"
    if found.name not in row.names:
        return f"it finds something else: {found.what}\n{found.where}"
    clean = run_seeds([seed], kind=row.kind).failures
    if clean:
        return f"it is not the fault's: without it, too, {clean[0].what}\n{clean[0].where}"
    return None
