"""A group as its members see it together: when it is complete, and how long joins took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic_ns


class Group:
    """Counts the epochs and partitions of the members of one group.

    The group is complete when all its members are at one epoch, or generation, every partition
    has an owner, and no member has a change to acknowledge. ``on_converged`` gets the ns from
    each join until then.
    """

    def __init__(self, group_id: str, partitions: int, on_converged: Callable[[int], None]) -> None:
        self.group_id = group_id
        self._partitions = partitions
        self._on_converged = on_converged
        self._epochs: Counter[int] = Counter()
        self._owned = 0
        self._unacknowledged = 0
        self._joins_ns: list[int] = []

    @property
    def is_complete(self) -> bool:
        return (
            len(self._epochs) == 1
            and 0 not in self._epochs
            and self._owned == self._partitions
            and not self._unacknowledged
        )

    def begin_join(self) -> None:
        """A member joins now; it is at epoch 0 until it is told another."""
        self._joins_ns.append(monotonic_ns())
        self._epochs[0] += 1

    def move(self, old_epoch: int, new_epoch: int, owned_more: int, unacknowledged: int) -> None:
        """A member goes from one epoch to another, and owns so many partitions more."""
        self._forget_epoch(old_epoch)
        self._epochs[new_epoch] += 1
        self._owned += owned_more
        self._unacknowledged += unacknowledged
        if self._joins_ns and self.is_complete:
            now_ns = monotonic_ns()
            for began_ns in self._joins_ns:
                self._on_converged(now_ns - began_ns)
            self._joins_ns.clear()

    def give_up(self) -> int:
        """Report all joins that still last, and return how many: each takes longer than that."""
        given_up, now_ns = len(self._joins_ns), monotonic_ns()
        for began_ns in self._joins_ns:
            self._on_converged(now_ns - began_ns)
        self._joins_ns.clear()
        return given_up

    @property
    def is_converging(self) -> bool:
        """Whether a join still lasts."""
        return bool(self._joins_ns)

    def remove(self, epoch: int, owned: int, unacknowledged: int) -> None:
        """A member leaves."""
        self._forget_epoch(epoch)
        self._owned -= owned
        self._unacknowledged -= unacknowledged

    def _forget_epoch(self, epoch: int) -> None:
        self._epochs[epoch] -= 1
        if not self._epochs[epoch]:
            del self._epochs[epoch]
