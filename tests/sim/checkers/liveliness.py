"""Who was heard from, and for how long."""

from __future__ import annotations


class Liveliness:
    """An independent account of who was heard from, and of who has had to revoke since when."""

    def __init__(self) -> None:
        self.heard_ms: dict[tuple[str, str], int] = {}
        self.revoking_since: dict[tuple[str, str], tuple[int, int]] = {}
        self.stalls: list[tuple[int, int]] = []
        """When the server stood still, and until when."""
        self.rebalance_timeout_ms: dict[tuple[str, str], int] = {}

    def compute_passed_ms(self, since_ms: int, now_ms: int) -> int:
        """How much of the time since then the server has not stood still."""
        stalled_ms = sum(
            min(until_ms, now_ms) - max(from_ms, since_ms)
            for from_ms, until_ms in self.stalls
            if until_ms > since_ms
        )
        return now_ms - since_ms - stalled_ms
