"""What the checkers of this simulation find, and which of them speak.

``S2``, ``S11``, ``S15`` and ``S20`` are of the specification. ``unread``: nobody reads what
somebody is there to read. ``ghost``: a member that nobody speaks for. ``cancelled``:
``CancelledError`` where nobody cancelled. ``renamed``: a member is fenced by its own past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.sim.checkers.violations import Violation


class _Speaking:
    """The checkers that speak; all of them where there are none."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()


_SPEAKING = _Speaking()


def is_silent(name: str) -> bool:
    """Whether this checker lets all pass, so that another one is heard."""
    return bool(_SPEAKING.names) and name not in _SPEAKING.names


def check(holds: bool, name: str, what: str | Callable[[], str]) -> None:
    """Raise the violation unless it holds, or the checker is silent."""
    if not holds and not is_silent(name):
        raise Violation(name, what if isinstance(what, str) else what())


@contextmanager
def speaking(*names: str) -> Iterator[None]:
    """Only these find anything; all where none is named."""
    _SPEAKING.names = frozenset(names)
    try:
        yield
    finally:
        _SPEAKING.names = frozenset()
