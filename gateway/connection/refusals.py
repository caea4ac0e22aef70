"""Logs refused connections without flooding the log.

A port scanner or a looping client makes thousands of bad connections. Each reason is logged at most
once a second, with the number of suppressed lines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger("muster.gateway")

_INTERVAL_S = 1.0


class Refusals:
    """Counts refusals by reason and logs them, each reason at most once a second."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._next: dict[str, float] = {}
        self._held_back: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def refuse(self, reason: str, peer: str, detail: str) -> None:
        """Count and log a refusal; ``reason`` is a stable slug, ``detail`` a readable line."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        now = self._time()
        if now < self._next.get(reason, 0.0):
            self._held_back[reason] = self._held_back.get(reason, 0) + 1
            return
        self._next[reason] = now + _INTERVAL_S
        held_back = self._held_back.pop(reason, 0)
        said = {"reason": reason, "peer": peer, "detail": detail, "held_back": held_back}
        logger.warning("kafka_connection_refused", extra=said)
