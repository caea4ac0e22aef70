"""A group that is taken and given back while it works, and how long its members stood still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.interop.classic_clients import Member
from tests.kafka.releases import Release
from tests.upstream.clients import RANGE
from tests.upstream.scene import Scene, now_ms

PAUSE_MAX_MS: Final = 8_000
"""A rebalance in which all members hear of it with their next heartbeat, after 3 s, and some
clients wait a while before they ask for their coordinator again."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, and the clients of the members of one group."""

    release: Release
    clients: Sequence[str]
    strategy: str = RANGE
    brokers: int = 1

    def __str__(self) -> str:
        of = "+".join(self.clients)
        return f"{self.release}x{self.brokers}-{of}-{self.strategy}"


@dataclass(slots=True)
class Timeline:
    """When moves began and were over, for those who read of pauses."""

    scene: Scene
    notes: list[str] = field(default_factory=list)
    pause_max_ms: int = PAUSE_MAX_MS

    def take(self) -> None:
        self._note("take", self.scene.take)

    def release(self) -> None:
        self._note("release", self.scene.release)

    def _note(self, what: str, move: object) -> None:
        assert callable(move)
        began_ms = now_ms()
        took_s = move()
        settle(self.scene)
        pauses = self.scene.ledger.find_pauses(began_ms)
        self.notes.append(f"{what} {took_s:.1f} s, {self.scene.describe_pauses(began_ms)}")
        late = [pause for pause in pauses if pause.took_ms > self.pause_max_ms]
        assert not late, self.notes


def settle(scene: Scene, members: Sequence[Member] | None = None) -> None:
    """Until no rebalance is left, every member has read since, and each partition has one owner."""
    scene.wait_until_stable(members)
    scene.wait_until_read(now_ms(), members)
    scene.wait_until_shared(members)
