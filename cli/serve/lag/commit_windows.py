"""The last commits of each partition that a group commits to."""

from __future__ import annotations

from array import array

from cli.serve.lag.group_status import WINDOW, Commit

_FIELDS = len(Commit._fields)


class CommitWindow:
    """The last ``WINDOW`` commits that were seen, in some 300 bytes."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = array("q")

    def see(self, offset: int, at_ms: int | None, lag: int, now_ms: int) -> None:
        """Note what is committed. ``at_ms`` is ``None`` if nobody knows since when it is.

        Then only a commit of another offset is seen, as one of ``now_ms``.
        """
        numbers = self._numbers
        if numbers:
            is_same = numbers[-2] == offset
            if is_same and (at_ms is None or numbers[-_FIELDS] == at_ms):
                return
        if len(numbers) >= WINDOW * _FIELDS:
            del numbers[:_FIELDS]
        numbers.extend((now_ms if at_ms is None else at_ms, offset, lag))

    def commits(self) -> list[Commit]:
        """The commits, in the order in which they were seen."""
        numbers = iter(self._numbers)
        return [Commit(*fields) for fields in zip(numbers, numbers, numbers, strict=True)]
