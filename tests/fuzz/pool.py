"""What the requests of one sequence speak about, so that they meet: groups, members, topics."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

EXTREMES: dict[int, tuple[int, ...]] = {
    1: (0, 1, -1, 2, 127, -128),
    2: (0, 1, -1, 5, 2**15 - 1, -(2**15)),
    4: (0, 1, -1, -2, 5, 1_000, 2**31 - 1, -(2**31)),
    8: (0, 1, -1, -2, -3, -5, 10**6, 2**62, 2**63 - 1, -(2**63)),
}
"""By the bytes of a signed number."""

PATTERNS = ("", "or.*", "^$", "(", "(a{1,1000}){1000}", "(.*)*(.*)*x", "events|orders", "\\C", ".")
STRINGS = ("", "a", "\0", ".", "..", "a/b", "é" * 50, "x" * 300, "x" * 1_100, "\U0001d518")
TOPICS = ("orders", "events", "orders", "events", "none", "__consumer_offsets", "", "a/b", "..")


@dataclass
class Member:
    """A member as its client knows it. ``owned`` is what it was assigned last, by topic id."""

    member_id: str
    epoch: int = 0
    owned: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    assignment_id: int = 0


@dataclass
class Pool:
    """Three groups of a sequence, with what answers have told of their members."""

    name: str
    rng: random.Random
    members: dict[str, dict[str, Member]] = field(default_factory=dict)
    topic_ids: list[bytes] = field(default_factory=list)
    producers: list[tuple[int, int]] = field(default_factory=list)
    group_id: str = ""
    member: Member = field(default_factory=lambda: Member(""))
    waits: bool = False
    """Somebody may have to be waited for longer than the deadline."""

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{number}" for number in range(3))

    def turn(self) -> None:
        """Choose who speaks next."""
        rng = self.rng
        self.group_id = rng.choice(self.groups)
        known = list(self.members.get(self.group_id, {}).values())
        if known and rng.random() < 0.8:
            self.member = rng.choice(known)
        else:
            self.member = Member(rng.choice(("", f"m{rng.randrange(4)}")))

    def learn(self, group_id: str, member_id: str, epoch: int) -> Member:
        """What an answer has told of a member; one below 0 has left."""
        members = self.members.setdefault(group_id, {})
        if epoch < 0:
            members.pop(member_id, None)
            return Member(member_id)
        member = members.setdefault(member_id, Member(member_id))
        member.epoch = epoch
        return member

    def mostly(self, likely: T, *others: T, chance: float = 0.85) -> T:
        """``likely`` in so many cases of all, else one of the others."""
        return likely if not others or self.rng.random() < chance else self.rng.choice(others)

    def pick(self, *values: T) -> T:
        return self.rng.choice(values)

    def partitions(self) -> tuple[int, ...]:
        """Mostly a few that exist."""
        rng = self.rng
        if rng.random() < 0.05:
            return tuple(rng.choice(EXTREMES[4]) for _ in range(3))
        return tuple(rng.randrange(12) for _ in range(rng.choice((0, 1, 1, 2, 12))))

    def topic_id(self) -> bytes:
        return self.mostly(
            self.rng.choice(self.topic_ids or [bytes(16)]), bytes(16), self.rng.randbytes(16)
        )

    def number(self, width: int) -> Any:
        """An extreme of so many bytes."""
        return self.rng.choice(EXTREMES[width])
