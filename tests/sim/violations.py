"""What the checkers find."""

from __future__ import annotations

from collections.abc import Callable


class Violation(BaseException):
    """An invariant does not hold. ``name`` is its name in the specification: S1, S11, L1.

    No ``Exception``, for the server goes on after some of those: what it keeps from others (an
    expiry that raises, a watcher) must not keep a violation from the seed.
    """

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


def check(holds: bool, name: str, what: str | Callable[[], str]) -> None:
    """Raise the violation unless it holds; words that take long to find are found only then."""
    if not holds:
        raise Violation(name, what if isinstance(what, str) else what())
