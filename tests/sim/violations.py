"""What the checkers find."""

from __future__ import annotations

from collections.abc import Callable


class Violation(AssertionError):
    """An invariant does not hold. ``name`` is its name in the specification: S1, S11, L1."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


def check(holds: bool, name: str, what: str | Callable[[], str]) -> None:
    """Raise the violation unless it holds; words that take long to find are found only then."""
    if not holds:
        raise Violation(name, what if isinstance(what, str) else what())
