"""A process of a client that stands still for a while, or for ever."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.virtual.scheduler import VirtualScheduler


class Pausing:
    """What happens to it while it stands still happens after that, in its order."""

    def __init__(self, time: VirtualScheduler) -> None:
        self.is_dead = False
        self._time = time
        self._pauses = 0
        self._deferred: list[Callable[[], None]] = []

    def run(self, callback: Callable[[], None]) -> None:
        """Call now, or after the pause; never if it is dead."""
        if self.is_dead:
            return
        if self._pauses:
            self._deferred.append(callback)
        else:
            callback()

    def pause(self, duration_ms: int) -> None:
        """Stand still for so long, or until all pauses are over."""
        self._pauses += 1
        self._time.call_later_ms(duration_ms, lambda: self.resume(1))

    def resume(self, pauses: int | None = None) -> None:
        """One pause is over, or all of them."""
        self._pauses = 0 if pauses is None else max(self._pauses - pauses, 0)
        if not self._pauses:
            deferred, self._deferred = self._deferred, []
            for callback in deferred:
                self.run(callback)
