"""What the relays count, for metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class RelayCounts:
    """Since the start, of all relays. ``answered`` are requests that a relay answered itself."""

    refused: int = 0
    """Connections above the limit."""
    answered: int = 0
    closed: Counter[str] = field(default_factory=Counter)
    """Connections that a relay closed, by reason."""
    held_bytes: int = 0
    """Bytes of frames that are being looked at, now."""
