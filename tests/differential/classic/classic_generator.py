"""Sequences with classic members, by seed: of classic groups, or of groups that change type."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from tests.differential.classic.classic_members import CONSUMER
from tests.differential.classic.classic_steps import (
    ClassicBeat,
    ClassicCommit,
    ClassicExpire,
    ClassicFlaw,
    ClassicJoin,
    ClassicLeave,
    ClassicLook,
    ClassicSync,
)
from tests.differential.steps import (
    Beat,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Epoch,
    Expire,
    Fetch,
    Join,
    Leave,
    Look,
    Remove,
    Settle,
)

GROUPS: Final = 2
MEMBERS: Final = 5

_OTHER_TYPES_EVERY = 4
"""Of so many sequences of classic groups one is of another type than consumers."""

_TOPICS = ("wide1", "wide2", "wide3", "wide6")
_PROTOCOLS = (
    ("range",),
    ("range",),
    ("roundrobin", "range"),
    ("range", "roundrobin"),
    ("cooperative-sticky", "range"),
    ("cooperative-sticky",),
)
_STATIC = (3, 4)
"""Members that are instances, always."""

Who = tuple[int, int]


class ClassicGenerator:
    """A rough idea of who is a member goes along, so that most steps mean something."""

    def __init__(self, seed: int, *, is_migration: bool) -> None:
        self._random = random.Random(seed)
        self._is_migration = is_migration
        is_other = not is_migration and seed // 5 % _OTHER_TYPES_EVERY == 3
        self.protocol_type = "connect" if is_other else CONSUMER
        self._present: set[Who] = set()
        self._consumers: set[Who] = set()
        self._protocols = {member: self._choose_protocols() for member in range(MEMBERS)}
        self._are_all_static = is_migration and self._random.random() < 0.5

    def make(self, length: int) -> list[Any]:
        """So many steps."""
        makers: list[tuple[int, Callable[[], Any]]] = [
            (14, self._join),
            (3, self._join_with_a_flaw),
            (6, self._sync),
            (8, self._sync_all),
            (6, self._beat),
            (5, self._odd_beat),
            (6, self._leave),
            (7, self._commit),
            (4, self._fetch),
            (2, self._delete_offsets),
            (1, self._delete_group),
            (1, self._expire),
            (5, self._look),
            (6, self._settle),
        ]
        if self._is_migration:
            makers += [
                (10, self._consumer_joins),
                (5, self._consumer_beats),
                (7, self._consumer_leaves),
                (1, self._consumer_expires),
                (3, self._consumer_commits),
                (2, self._look_at_consumers),
            ]
        steps: list[Any] = []
        while len(steps) < length:
            make = self._random.choices([row[1] for row in makers], [row[0] for row in makers])[0]
            step = make()
            if step is not None:
                steps.append(step)
        return steps

    # ----------------------------------------------------------------------------- who and what

    def _choose_protocols(self) -> tuple[str, ...]:
        return self._random.choice(_PROTOCOLS)

    def _any(self) -> Who:
        # Few groups of few members: what members do meets what others do.
        return min(self._random.choice((0, 0, 1)), GROUPS - 1), self._random.randrange(MEMBERS)

    def _someone(self) -> Who:
        if self._present and self._random.random() < 0.9:
            return self._random.choice(sorted(self._present))
        return self._any()

    def _some_consumer(self) -> Who:
        if self._consumers and self._random.random() < 0.9:
            return self._random.choice(sorted(self._consumers))
        return self._any()

    def _topics(self) -> tuple[str, ...]:
        if self._is_migration and not self._are_all_static:
            return ("wide6",)
        return tuple(sorted(set(self._random.choices(_TOPICS, k=self._random.choice((1, 1, 2))))))

    def _topics_of(self, member: int, *, is_static: bool) -> tuple[str, ...]:
        """Of a classic member. Who gets what of a topic is in the order of ids, those of static
        members first: a dynamic one, whose id its side makes up, shares none in a migration.
        """
        if self._is_migration and not is_static:
            return (_TOPICS[member],)
        return self._topics()

    # ------------------------------------------------------------------------------ classic members

    def _join(self) -> ClassicJoin:
        who = self._any()
        is_static = who[1] in _STATIC or self._are_all_static
        is_back = who in self._present
        self._present.add(who)
        if self._random.random() < 0.1:
            self._protocols[who[1]] = self._choose_protocols()
        embedded = self._random.choice((3, 3, 3, 3, 2, 1, 0))
        return ClassicJoin(
            *who,
            self._protocols[who[1]],
            self._topics_of(who[1], is_static=is_static),
            instance=who[1] if is_static else None,
            is_new=is_static and self._random.random() < 0.4,
            says_the_same=is_back and self._random.random() < 0.4,
            stops=self._random.random() < 0.08,
            version=self._random.choice((9, 9, 9, 8, 7, 6, 5) if is_static else (9, 9, 8, 5, 4, 3)),
            embedded=embedded,
            user_data=b"u" if self._random.random() < 0.04 else None,
        )

    def _join_with_a_flaw(self) -> ClassicJoin:
        who = self._any()
        flaws = list(ClassicFlaw)
        if self._is_migration:
            # A consumer group takes any id for that of a new member.
            flaws.remove(ClassicFlaw.UNKNOWN_MEMBER)
        return ClassicJoin(*who, version=9, flaw=self._random.choice(flaws))

    def _sync(self) -> ClassicSync:
        who = self._someone()
        epoch = Epoch.CURRENT
        if self._random.random() < 0.3:
            epoch = self._random.choice(list(Epoch))
        says_another = self._random.random() < 0.1
        return ClassicSync(*who, epoch, self._random.choice((5, 5, 4, 3)), says_another)

    def _sync_all(self) -> ClassicSync:
        return ClassicSync(self._someone()[0])

    def _beat(self) -> ClassicBeat:
        return ClassicBeat(*self._someone(), version=self._random.choice((4, 3, 1)))

    def _odd_beat(self) -> ClassicBeat:
        who, epoch = self._someone(), self._random.choice(list(Epoch))
        return ClassicBeat(*who, epoch, is_former=self._random.random() < 0.3)

    def _leave(self) -> ClassicLeave:
        group, member = self._someone()
        members = [member]
        if self._random.random() < 0.3:
            members.append(self._random.randrange(MEMBERS))
        for each in members:
            self._present.discard((group, each))
        by_instance = self._random.random() < 0.5
        version = self._random.choice((5, 5, 4, 3, 2))
        return ClassicLeave(group, tuple(dict.fromkeys(members)), by_instance, version)

    def _expire(self) -> ClassicExpire | None:
        if not self._present:
            return None
        who = self._random.choice(sorted(self._present))
        self._present.discard(who)
        return ClassicExpire(*who)

    def _commit(self) -> ClassicCommit:
        who, epoch = self._someone(), Epoch.CURRENT
        if self._random.random() < 0.3:
            epoch = self._random.choice(list(Epoch))
        in_transaction = self._random.random() < 0.3
        return ClassicCommit(
            *who,
            self._random.randrange(1_000),
            self._random.choice(_TOPICS),
            epoch,
            in_transaction,
            is_former=self._random.random() < 0.1,
            version=self._random.choice((4, 3) if in_transaction else (9, 8, 7, 5)),
        )

    # ------------------------------------------------------------------------------ other members

    def _consumer_joins(self) -> Join | None:
        who = self._any()
        instance = who[1] if who[1] in _STATIC or self._are_all_static else None
        if who in self._consumers and instance is not None:
            return None
        self._consumers.add(who)
        return Join(*who, self._topics(), instance, "range")

    def _consumer_beats(self) -> Beat:
        return Beat(*self._some_consumer())

    def _consumer_leaves(self) -> Leave | Remove:
        who = self._some_consumer()
        self._consumers.discard(who)
        if self._random.random() < 0.2:
            return Remove(*who)
        is_static = who[1] in _STATIC or self._are_all_static
        return Leave(*who, is_static=is_static and self._random.random() < 0.3)

    def _consumer_expires(self) -> Expire | None:
        if not self._consumers:
            return None
        who = self._random.choice(sorted(self._consumers))
        self._consumers.discard(who)
        return Expire(*who)

    def _consumer_commits(self) -> Commit:
        who = self._some_consumer()
        return Commit(*who, self._random.randrange(1_000), self._random.choice(_TOPICS))

    # ------------------------------------------------------------------------------------- groups

    def _fetch(self) -> Fetch:
        return Fetch(self._any()[0], None, version=self._random.choice((8, 9)))

    def _delete_offsets(self) -> DeleteOffsets:
        return DeleteOffsets(self._any()[0], self._random.choice(_TOPICS))

    def _delete_group(self) -> DeleteGroup:
        return DeleteGroup(self._any()[0])

    def _look(self) -> ClassicLook:
        return ClassicLook(self._someone()[0], self._random.choice((5, 5, 6)))

    def _look_at_consumers(self) -> Look:
        return Look(self._any()[0])

    def _settle(self) -> Settle:
        return Settle(self._someone()[0])
