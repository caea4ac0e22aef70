"""How many groups and members each user has, as far as this process has seen.

Records know no principals: after a restart a member counts again from its first request on, and
what nobody has asked for since is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from model.errors import GroupMaxSizeReached, PolicyViolation
from model.ids import GroupId, MemberId

GRACE_S: Final = 10.0
"""A member that is about to be made is not there yet."""
_LOOK_S: Final = 1.0
"""The time between two looks at what has gone."""
_LOOK_FROM: Final = 64
"""So many (of one user, and users) are kept without a look at what has gone, or twice as many as
the last look left."""


class Held(NamedTuple):
    """A member, or with ``member_id`` ``None`` the group itself, which offsets alone may make."""

    group_id: GroupId
    member_id: MemberId | None


IsHeld: TypeAlias = Callable[[Held], bool]
"""Whether the group or the member is there."""


class Holding:
    """What one user has. ``look_at`` is when to look again for what has gone."""

    __slots__ = ("groups", "look_at", "look_from", "members", "noted")

    def __init__(self) -> None:
        self.noted: dict[Held, float] = {}
        self.groups: dict[GroupId, int] = {}
        self.members = 0
        self.look_at = 0.0
        self.look_from = _LOOK_FROM

    def add(self, held: Held, now: float) -> None:
        """Note a group or a member."""
        if held not in self.noted:
            self.groups[held.group_id] = self.groups.get(held.group_id, 0) + 1
            self.members += held.member_id is not None
        self.noted[held] = now

    def drop(self, held: Held) -> None:
        """Forget a group or a member."""
        del self.noted[held]
        self.members -= held.member_id is not None
        self.groups[held.group_id] -= 1
        if not self.groups[held.group_id]:
            del self.groups[held.group_id]

    def forget_gone(self, is_held: IsHeld, now: float) -> None:
        """Forget what is not there any more; at most once a second."""
        if now < self.look_at:
            return
        self.look_at = now + _LOOK_S
        for held, noted_at in list(self.noted.items()):
            if now - noted_at >= GRACE_S and not is_held(held):
                self.drop(held)
        self.look_from = max(_LOOK_FROM, 2 * len(self.noted))


class Holdings:
    """What the users have that have a limit."""

    __slots__ = ("_by_user", "_look_from")

    def __init__(self) -> None:
        self._by_user: dict[str, Holding] = {}
        self._look_from = _LOOK_FROM

    def __len__(self) -> int:
        return len(self._by_user)

    def find(self, user: str, is_held: IsHeld, now: float) -> Holding:
        """What a user has."""
        holding = self._by_user.get(user)
        if holding is None:
            if len(self._by_user) >= self._look_from:
                self._forget_gone(is_held, now)
            holding = self._by_user[user] = Holding()
        return holding

    def _forget_gone(self, is_held: IsHeld, now: float) -> None:
        """Forget the users that have nothing any more."""
        for user, holding in list(self._by_user.items()):
            holding.forget_gone(is_held, now)
            if not holding.noted:
                del self._by_user[user]
        self._look_from = max(_LOOK_FROM, 2 * len(self._by_user))

    def forget(self) -> None:
        """Forget everything: nobody has a limit any more."""
        self._by_user.clear()

    def observe(self, user: str, held: Held, is_held: IsHeld, now: float) -> None:
        """Note what the user speaks for, if it is there."""
        holding = self.find(user, is_held, now)
        if held not in holding.noted and is_held(held):
            _note(holding, held, is_held, now)

    def check(
        self,
        user: str,
        held: Held,
        is_held: IsHeld,
        now: float,
        *,
        groups_max: int | None,
        members_max: int | None,
    ) -> None:
        """Note what the user is about to make, or has already.

        Raises ``PolicyViolation`` for a group, and ``GroupMaxSizeReached`` for a member, that
        would be one too many. A member whose id is still empty is not noted.
        """
        holding = self.find(user, is_held, now)
        if held in holding.noted:
            return
        if not is_held(held):
            is_new = held.group_id not in holding.groups and not is_held(Held(held.group_id, None))
            if groups_max is not None and is_new:
                if len(holding.groups) >= groups_max:
                    holding.forget_gone(is_held, now)
                if len(holding.groups) >= groups_max:
                    raise PolicyViolation(f"The user may have at most {groups_max} groups.")
            if members_max is not None and held.member_id is not None:
                if holding.members >= members_max:
                    holding.forget_gone(is_held, now)
                if holding.members >= members_max:
                    raise GroupMaxSizeReached(f"The user may have at most {members_max} members.")
        if held.member_id != "":
            _note(holding, held, is_held, now)


def _note(holding: Holding, held: Held, is_held: IsHeld, now: float) -> None:
    holding.add(held, now)
    if len(holding.noted) >= holding.look_from:
        holding.forget_gone(is_held, now)
