"""Assignors from other packages: entry points of the group ``muster.assignors``.

An entry point names a function of type ``muster.assignors.assignor.Assign``, which takes a
``muster.assignors.problem.Problem`` and returns the assignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from muster.assignors.assignor import Assignor
from muster.assignors.registry import ASSIGNORS, Assignors

ENTRY_POINTS: Final = "muster.assignors"


class AssignorNotFound(Exception):
    """An assignor cannot be loaded; the message says why."""


def load_assignors(names: Iterable[str]) -> Assignors:
    """The built-in assignors, plus the named custom ones.

    Raises ``AssignorNotFound``. A custom assignor cannot replace a built-in one.
    """
    found = dict(ASSIGNORS)
    for name in names:
        if name not in found:
            found[name] = _load(name)
    return found


def _load(name: str) -> Assignor:
    candidates = list(entry_points(group=ENTRY_POINTS, name=name))
    if not candidates:
        raise AssignorNotFound(
            f"there is no assignor {name}: no installed package has an entry point of that name "
            f"in the group {ENTRY_POINTS}"
        )
    if len({candidate.value for candidate in candidates}) > 1:
        raise AssignorNotFound(f"several packages have an assignor {name}: remove all but one")
    assign = _import(candidates[0])
    if not callable(assign):
        raise AssignorNotFound(f"the assignor {name} ({candidates[0].value}) is not a function")
    return Assignor(name, assign, is_custom=True)


def _import(candidate: EntryPoint) -> object:
    try:
        return candidate.load()
    except Exception as error:
        raise AssignorNotFound(
            f"the assignor {candidate.name} ({candidate.value}) cannot be imported: {error!r}"
        ) from error
