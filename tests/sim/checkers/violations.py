"""What the checkers find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Violation(BaseException):
    """An invariant does not hold. ``name`` is its name in the specification: S1, S11, L1.

    No ``Exception``, for the server goes on after some of those: what it keeps from others (an
    expiry that raises, a watcher) must not keep a violation from the seed.
    """

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


class _Focus:
    """The safety checkers that speak, where the others are not to find things before them."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    def silences(self, name: str) -> bool:
        return bool(self.names) and name not in self.names and name.startswith("S")


_FOCUS = _Focus()


def check(holds: bool, name: str, what: str | Callable[[], str]) -> None:
    """Raise the violation unless it holds; words that take long to find are found only then."""
    if not holds and not _FOCUS.silences(name):
        raise Violation(name, what if isinstance(what, str) else what())


@contextmanager
def focus(*names: str) -> Iterator[None]:
    """No other checker of safety says anything: what these alone find."""
    set_focus(*names)
    try:
        yield
    finally:
        set_focus()


def set_focus(*names: str) -> None:
    """The same for the rest of this process; without names all speak again."""
    _FOCUS.names = names
