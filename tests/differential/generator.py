"""Sequences of steps, by seed. What is generated depends on the seed alone, never on an answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from tests.differential.classic.classic_generator import GROUPS, MEMBERS, ClassicGenerator
from tests.differential.classic.classic_members import CONSUMER
from tests.differential.classic.classic_steps import ClassicStep
from tests.differential.seen import Mode
from tests.differential.steps import (
    Beat,
    Chosen,
    Commit,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DropTopic,
    Epoch,
    Expire,
    Fetch,
    Flaw,
    GrowTopic,
    Join,
    Leave,
    Linger,
    Look,
    Owned,
    Remove,
    Settle,
    Step,
)

AnyStep: TypeAlias = Step | ClassicStep

STEPS: Final = 40
INTERVAL_MS: Final = 1_000

UNIFORM_EVERY: Final = 4
INTERVAL_EVERY: Final = 10
TOPICS_EVERY: Final = 4
PATTERNS_EVERY: Final = 20
"""Of so many sequences one has uniform assignments, the interval, topics that change, patterns."""

KINDS: Final = 5
CLASSIC, MIGRATION = 2, 4
"""Of so many sequences one is of classic groups, and one of groups that change their type."""

PATTERN_STEPS: Final = 3
"""Kafka takes up to 10 s to resolve what comes after the first pattern of a group."""

_PATTERNS: Final = ("a", "[ab]", ".*", "(a|b)", "b?a+")
"""All match a topic that is there: a change to one that matches nothing is a known difference."""

_SHARED: Final = ("wide1", "wide2", "wide3", "wide6")


class Sequence(NamedTuple):
    """Steps, and how the two sides are compared."""

    seed: int
    mode: Mode
    assignor: str
    steps: tuple[AnyStep, ...]
    interval_ms: int = 0
    protocol_type: str = CONSUMER
    """Of the classic members."""


def generate(seed: int, length: int = STEPS) -> Sequence:
    """The sequence of a seed."""
    kind = seed % KINDS
    if kind in (CLASSIC, MIGRATION):
        classic = ClassicGenerator(seed, is_migration=kind == MIGRATION)
        mode = Mode.SETTLED if kind == MIGRATION else Mode.EXACT
        classic_steps = tuple(classic.make(length))
        return Sequence(seed, mode, "range", classic_steps, protocol_type=classic.protocol_type)
    mode, assignor, interval_ms = Mode.EXACT, "range", 0
    if seed % UNIFORM_EVERY == 3:
        mode, assignor = Mode.QUALITY, "uniform"
    if seed % INTERVAL_EVERY == 5:
        mode, assignor = Mode.SETTLED, ("range", "uniform")[seed // INTERVAL_EVERY % 2]
        interval_ms = INTERVAL_MS
    if has_patterns(seed):
        mode, assignor = Mode.SETTLED, ("range", "uniform")[seed // PATTERNS_EVERY % 2]
    steps = _Generator(seed, mode, assignor).make(length)
    return Sequence(seed, mode, assignor, tuple(steps), interval_ms)


def has_patterns(seed: int) -> bool:
    """Whether the sequence of a seed takes long."""
    return seed % PATTERNS_EVERY == 8


class _Generator:
    """A rough idea of who is a member goes along, so that most steps mean something."""

    def __init__(self, seed: int, mode: Mode, assignor: str) -> None:
        self._random = random.Random(seed)
        self._mode = mode
        self._assignor = assignor
        self._changes_topics = seed % TOPICS_EVERY == 1
        self._pattern_steps = PATTERN_STEPS if has_patterns(seed) else 0
        self._present: dict[tuple[int, int], int | None] = {}
        """Who is in, and as which instance."""

        self._away: dict[tuple[int, int], int] = {}
        self._subscribed: dict[tuple[int, int], tuple[str, ...]] = {}
        self._own_topics: set[str] = set()

    def make(self, length: int) -> list[Step]:
        steps: list[Step] = []
        if self._changes_topics:
            steps.append(self._create_topic(self._own()))
        if self._pattern_steps:
            steps += [self._create_topic("a"), self._join_with_a_pattern()]
        makers = self._list_makers()
        while len(steps) < length:
            make = self._random.choices([row[1] for row in makers], [row[0] for row in makers])[0]
            step = make()
            if step is not None:
                steps.append(step)
        return steps

    def _list_makers(self) -> list[tuple[int, Callable[[], Step | None]]]:
        makers: list[tuple[int, Callable[[], Step | None]]] = [
            (14, self._join),
            (2, self._join_with_a_flaw),
            (2, self._join_in_place_of_another),
            (16, self._beat),
            (7, self._odd_beat),
            (3, self._subscribe),
            (5, self._leave),
            (2, self._remove),
            (10, self._commit),
            (6, self._fetch),
            (3, self._delete_offsets),
            (1, self._delete_group),
            (2, self._expire),
            (4, self._look),
            (6, self._settle),
        ]
        if self._pattern_steps:
            makers += [(5, self._change_pattern), (2, self._create_any), (2, self._grow_topic)]
        if self._mode is Mode.EXACT:
            makers += [(2, self._linger), (6, self._odd_commit)]
        if self._changes_topics:
            makers += [(3, self._create_any), (4, self._grow_topic), (2, self._drop_topic)]
        return makers

    # ----------------------------------------------------------------------------- who and what

    def _any(self) -> tuple[int, int]:
        return self._random.randrange(GROUPS), self._random.randrange(MEMBERS)

    def _someone(self) -> tuple[int, int]:
        """Mostly one who is in."""
        if self._present and self._random.random() < 0.9:
            return self._random.choice(sorted(self._present))
        return self._any()

    def _topics(self) -> tuple[str, ...]:
        names = [*_SHARED, *sorted(self._own_topics) * 3]
        count = self._random.choice((1, 1, 2, 2, 3))
        return tuple(sorted(set(self._random.choices(names, k=count))))

    def _topic_of(self, who: tuple[int, int]) -> str:
        names = self._subscribed.get(who) or _SHARED
        return self._random.choice(names) if self._random.random() < 0.8 else "b"

    def _own(self) -> str:
        return self._random.choice(("a", "b"))

    # ------------------------------------------------------------------------------ heartbeats

    def _join(self) -> Step | None:
        who = self._any()
        if who in self._present and self._present[who] is not None:
            return None
        instance = self._away.pop(who, None)
        if instance is None and who not in self._present and self._random.random() < 0.25:
            instance = who[1]
        self._present[who] = instance
        topics = self._subscribed[who] = self._topics()
        assignor = self._assignor
        named = assignor == "uniform" or self._random.random() < 0.5
        return Join(*who, topics, instance, assignor if named else None)

    def _join_in_place_of_another(self) -> Step | None:
        """With an instance id that another has, or had until it left for a while."""
        who = self._any()
        statics = {key: instance for key, instance in self._present.items() if instance is not None}
        others = sorted(key for key in statics | self._away if key[0] == who[0])
        if who in self._present or who in self._away or not others:
            return None
        other = self._random.choice(others)
        instance = self._away.pop(other, None)
        if instance is not None:
            self._present[who] = instance
        topics = self._subscribed[who] = self._topics()
        return Join(*who, topics, statics.get(other, instance), self._assignor)

    def _join_with_a_flaw(self) -> Step:
        return Join(*self._any(), self._topics(), flaw=self._random.choice(list(Flaw)))

    def _beat(self) -> Step:
        who = self._someone()
        owned = self._random.choices((Owned.TOLD, Owned.UNSAID), (3, 1))[0]
        return Beat(*who, Epoch.CURRENT, owned, is_full=self._random.random() < 0.1)

    def _odd_beat(self) -> Step:
        """Wrong epochs, and wrong ownership where the assignments of both sides are the same."""
        who = self._someone()
        epoch = self._random.choice(list(Epoch))
        if self._random.random() < 0.2:
            return Beat(*who, is_former=True)
        if self._mode is Mode.EXACT:
            return Beat(*who, epoch, self._random.choice(list(Owned)))
        odd = (Epoch.AHEAD, Epoch.ODD)
        return Beat(*who, epoch if epoch in odd else Epoch.CURRENT, Owned.TOLD)

    def _join_with_a_pattern(self) -> Step:
        who = self._any()
        self._present[who] = None
        topics = self._subscribed[who] = self._random.choice(((), (), self._topics()))
        pattern = self._random.choice(_PATTERNS)
        return Join(*who, topics, assignor=self._assignor, pattern=pattern)

    def _change_pattern(self) -> Step | None:
        """A member's pattern is another, or none; or a member joins with one."""
        if self._pattern_steps < 2:
            return None
        self._pattern_steps -= 1
        who = self._someone()
        if who not in self._present:
            return self._join_with_a_pattern()
        return Beat(*who, pattern=self._random.choice(("", *_PATTERNS)))

    def _subscribe(self) -> Step:
        who = self._someone()
        topics = self._subscribed[who] = self._topics()
        return Beat(*who, topics=topics, owned=Owned.TOLD)

    def _leave(self) -> Step:
        who = self._someone()
        instance = self._present.pop(who, None)
        if instance is None or self._random.random() < 0.4:
            return Leave(*who, is_static=instance is None and self._random.random() < 0.1)
        self._away[who] = instance
        return Leave(*who, is_static=True)

    def _remove(self) -> Step:
        who = self._someone()
        instance = self._present.pop(who, None)
        return Remove(*who, by_instance=instance is not None and self._random.random() < 0.7)

    def _expire(self) -> Step | None:
        if not self._present:
            return None
        who = self._random.choice(sorted(self._present))
        instance = self._present.pop(who)
        return Expire(*who, is_static=instance is not None and self._random.random() < 0.5)

    def _linger(self) -> Step | None:
        if not self._present:
            return None
        who = self._random.choice(sorted(self._present))
        joiner = who[0], self._random.randrange(MEMBERS)
        topics = self._subscribed.get(who)
        if joiner in self._present or joiner in self._away or not topics:
            return None
        self._present[joiner] = None
        self._subscribed[joiner] = topics
        return Linger(*who, joiner[1], topics)

    # --------------------------------------------------------------------------------- offsets

    def _commit(self) -> Step:
        who = self._someone()
        version = self._random.choice((8, 9, 9, 9, 10, 10))
        offset = self._random.randrange(1_000)
        if self._random.random() < 0.3:
            return Commit(who[0], None, offset, self._topic_of(who), Epoch.NONE, version=version)
        size = self._random.choice((0, 1, 1, 1, 1, 1, 4_096, 4_097))
        return Commit(*who, offset, self._topic_of(who), version=version, metadata_chars=size)

    def _odd_commit(self) -> Step:
        who = self._someone()
        return Commit(
            *who,
            self._random.randrange(1_000),
            self._topic_of(who),
            self._random.choice((*Epoch, Epoch.CURRENT, Epoch.PREVIOUS)),
            self._random.choice((*Chosen, Chosen.HELD, Chosen.OTHER)),
            self._random.choice((9, 9, 10)),
            is_former=self._random.random() < 0.1,
        )

    def _fetch(self) -> Step:
        who = self._someone()
        topic = self._topic_of(who) if self._random.random() < 0.6 else None
        version = self._random.choice((8, 9, 10))
        if self._random.random() < 0.3:
            return Fetch(who[0], None, topic, version=version)
        epoch = self._random.choice((*Epoch, Epoch.CURRENT, Epoch.CURRENT, Epoch.CURRENT))
        if self._mode is Mode.SETTLED and epoch is Epoch.PREVIOUS:
            # How many epochs a member is told on the way to the settled one is up to a side: a
            # pattern may be resolved before the join that brings it is answered, or after.
            epoch = Epoch.BEHIND
        return Fetch(*who, topic, epoch, version)

    def _delete_offsets(self) -> Step:
        who = self._someone()
        return DeleteOffsets(who[0], self._topic_of(who))

    def _delete_group(self) -> Step:
        return DeleteGroup(self._random.randrange(GROUPS))

    # ---------------------------------------------------------------------------------- others

    def _look(self) -> Step:
        return Look(self._someone()[0])

    def _settle(self) -> Step:
        return Settle(self._someone()[0])

    def _create_any(self) -> Step:
        return self._create_topic(self._own())

    def _create_topic(self, name: str) -> Step:
        self._own_topics.add(name)
        return CreateTopic(name, self._random.randint(1, 5))

    def _grow_topic(self) -> Step:
        return GrowTopic(self._own(), self._random.randint(1, 3))

    def _drop_topic(self) -> Step:
        name = self._own()
        self._own_topics.discard(name)
        return DropTopic(name)
