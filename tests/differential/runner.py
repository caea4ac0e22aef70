"""A sequence on both sides at once, step by step; and a failing one made short."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tests.differential.classic.classic_generator import GROUPS
from tests.differential.classic.classic_side import ClassicSide
from tests.differential.classic.classic_steps import (
    ClassicBeat,
    ClassicCommit,
    ClassicExpire,
    ClassicJoin,
    ClassicLeave,
    ClassicLook,
    ClassicSync,
)
from tests.differential.generator import AnyStep, Sequence
from tests.differential.seen import (
    ASSIGNING,
    GroupView,
    Mode,
    Moves,
    Seen,
    compute_moves,
    compute_with_ranges,
    find_difference,
    forget_assignments,
    forget_epochs,
    is_ahead,
    is_by_leader,
    is_told_anew,
    is_waiting,
)
from tests.differential.sides.admin import ANSWERED_IN_S, make_patience
from tests.differential.sides.side import Side
from tests.differential.sides.topics import Topics
from tests.differential.steps import (
    Beat,
    CreateTopic,
    DeleteGroup,
    DropTopic,
    Epoch,
    Expire,
    Fetch,
    GrowTopic,
    Join,
    Leave,
    Linger,
    Look,
    Remove,
    Settle,
)
from tests.support.waiting import NotInTime
from tests.support.wire.connection import Connection

SIMPLE: Final = ("", "Empty", "classic")
"""A group without members, as ListGroups shows it."""

ANSWERED_WITHIN_S: Final = 10.0
PAUSE_S: Final = 0.01

_runs: Final = itertools.count()


class Failure(NamedTuple):
    """A step at which the sides differ."""

    sequence: Sequence
    number: int
    step: AnyStep
    difference: str

    def show(self) -> str:
        """The seed, the steps up to the one that fails, and what differs."""
        lines = [f"seed {self.sequence.seed}, {self.sequence.mode.name}, {self.sequence.assignor}:"]
        lines += [f"  {step}," for step in self.sequence.steps[: self.number + 1]]
        if self.number >= len(self.sequence.steps):
            lines.append(f"  (in the end) {self.step}")
        return "\n".join([*lines, self.difference])


@dataclass
class Tally:
    """What the runs came to."""

    steps: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)


class Pair:
    """The same sequence on a Kafka and on a Muster."""

    def __init__(self, sequence: Sequence, kafka: Side, muster: Side, tally: Tally) -> None:
        self._sequence = sequence
        self._sides = kafka, muster
        self._tally = tally
        self._settled: dict[int, tuple[GroupView, GroupView]] = {}
        self._ahead: set[int] = set()
        """Groups to which Muster gave an epoch more than Kafka, as it should."""
        self._had_classic_members: set[int] = set()
        """Groups that may have changed their type."""
        self._waiting: set[int] = set()
        """Groups for which Kafka computes no target, with classic members alone or with what the
        leader of a classic group gave, and to which Muster gave one."""

    async def run(self) -> Failure | None:
        """The first difference."""
        await asyncio.gather(*(side.begin(GROUPS) for side in self._sides))
        try:
            return await self._run_steps()
        finally:
            await asyncio.gather(*(side.end() for side in self._sides))

    async def _run_steps(self) -> Failure | None:
        number = 0
        for number, step in enumerate(self._sequence.steps):
            for each in (step, *self._follow(step)):
                difference = await self._do(each)
                if difference is not None:
                    return Failure(self._sequence, number, each, difference)
        for step in list_last_steps():
            difference = await self._do(step)
            if difference is not None:
                return Failure(self._sequence, number + 1, step, difference)
        kafka, muster = [await side.listed() for side in self._sides]
        # Kafka computes a target with the next heartbeat, Muster as soon as the group has changed.
        muster |= {name: row for name, row in kafka.items() if name in muster and ASSIGNING in row}
        # Of a group that was nothing but its offsets Kafka knows for a while longer.
        kafka = {name: row for name, row in kafka.items() if name in muster or row != SIMPLE}
        if kafka != muster:
            difference = f"listed: Kafka {kafka}, Muster {muster}"
            return Failure(self._sequence, number + 1, Look(0), difference)
        return None

    def _follow(self, step: AnyStep) -> Iterable[AnyStep]:
        """Where the sides are compared in settled states alone, they settle after each change."""
        if self._sequence.mode is Mode.EXACT:
            return
        match step:
            case Join(group) | Leave(group) | Remove(group) | Expire(group) | Linger(group):
                yield Settle(group)
            case Beat(group):
                yield Settle(group)
            case ClassicJoin(group) | ClassicSync(group) | ClassicLeave(group):
                yield Settle(group)
            case ClassicExpire(group):
                yield Settle(group)
            case CreateTopic() | GrowTopic() | DropTopic():
                yield from map(Settle, range(GROUPS))
            case _:
                return

    async def _do(self, step: AnyStep) -> str | None:
        step = self._choose_for_both(step)
        if isinstance(step, ClassicJoin):
            self._had_classic_members.add(step.group)
        was_ghost = isinstance(step, DeleteGroup) and await self._is_ghost(step)
        kafka, muster = await asyncio.gather(*(_run_on(side, step) for side in self._sides))
        kafka, muster = await self._wait_for_answers(step, kafka, muster)
        if isinstance(kafka, NotInTime) or isinstance(muster, NotInTime):
            return f"not in time: Kafka {kafka}, Muster {muster}"
        self._tally.steps[type(step).__name__] += 1
        self._tally.codes.update(kafka.codes)
        differs = kafka.codes != muster.codes or isinstance(step, ClassicLook)
        if differs and (was_ghost or await self._is_ghost(step)):
            return None
        if isinstance(step, Beat) and self._sequence.mode is Mode.QUALITY and step.topics:
            # Whether a member has to give something up first depends on what it has.
            kafka, muster = kafka._replace(epoch=None), muster._replace(epoch=None)
        kafka, muster = self._forget_allowed(getattr(step, "group", None), kafka, muster)
        return find_difference(
            self._sequence.mode,
            kafka,
            muster,
            is_range=self._sequence.assignor == "range",
            moves=self._compute_moves(step, kafka, muster),
        )

    def _forget_allowed(self, group: int | None, kafka: Seen, muster: Seen) -> tuple[Seen, Seen]:
        """Both without what differs from now on, for the groups have differed as they may."""
        if group is None:
            return kafka, muster
        mode = self._sequence.mode
        if group in self._had_classic_members and is_told_anew(mode, kafka, muster):
            self._ahead.add(group)
        by_leader = group in self._ahead and is_by_leader(mode, kafka, muster)
        if group in self._ahead:
            kafka, muster = forget_epochs(kafka), forget_epochs(muster)
        if group in self._waiting:
            kafka, muster = forget_assignments(kafka), forget_assignments(muster)
        if is_ahead(mode, kafka):
            self._ahead.add(group)
        if kafka.is_settled:
            self._waiting.discard(group)
        if is_waiting(mode, kafka) or by_leader:
            self._waiting.add(group)
        if by_leader:
            kafka = compute_with_ranges(kafka, muster)
        return kafka, muster

    async def _wait_for_answers(
        self, step: AnyStep, kafka: Seen | NotInTime, muster: Seen | NotInTime
    ) -> tuple[Seen | NotInTime, Seen | NotInTime]:
        """Until both have answered the same members; what a side is late with is no difference."""
        patience = make_patience(ANSWERED_WITHIN_S)
        group = getattr(step, "group", None)
        while True:
            if isinstance(kafka, NotInTime) or isinstance(muster, NotInTime) or group is None:
                return kafka, muster
            if len(kafka.answers) == len(muster.answers) or patience.is_over():
                return kafka, muster
            await asyncio.sleep(PAUSE_S)
            kafka, muster = await asyncio.gather(
                *(
                    side.classic.add_answers(group, seen)
                    for side, seen in zip(self._sides, (kafka, muster), strict=True)
                )
            )

    def _choose_for_both(self, step: AnyStep) -> AnyStep:
        """A step that means the same to both sides.

        The generation before is Kafka's current one where it has computed no target yet, and where
        Muster is ahead. Who leads when a leader has gone is up to a side: a leader that joins again
        begins a rebalance, and its SyncGroup ends it; any other member does so with another
        metadata alone.
        """
        if isinstance(step, ClassicSync | ClassicBeat | ClassicCommit):
            is_apart = step.group in self._waiting | self._ahead
            if is_apart and step.epoch is Epoch.PREVIOUS:
                step = replace(step, epoch=Epoch.BEHIND)
        if not isinstance(step, ClassicJoin | ClassicSync):
            return step
        leaders = [side.classic.leader_of(step.group) for side in self._sides]
        names = {None if leader is None else leader.client_id for leader in leaders}
        if len(names) == 1 and None not in names:
            return step
        if isinstance(step, ClassicJoin):
            return replace(step, says_the_same=False)
        is_any = any(
            side.classic.member(step.group, step.member).is_leader
            for side in self._sides
            if step.member is not None
        )
        return replace(step, member=None) if is_any else step

    async def _is_ghost(self, step: AnyStep) -> bool:
        """Whether Kafka alone has the group: one of offsets alone, and there is none of them.

        Kafka forgets it with its next check for expiry, Muster at once.
        """
        group = getattr(step, "group", None)
        if group is None:
            return False
        kafka, muster = [await side.listed() for side in self._sides]
        group_id = self._sides[0].group_id(group)
        return kafka.get(group_id) == SIMPLE and group_id not in muster

    def _compute_moves(self, step: AnyStep, kafka: Seen, muster: Seen) -> Moves | None:
        """Since the group was settled before."""
        if not isinstance(step, Settle) or kafka.group is None or muster.group is None:
            return None
        after = kafka.group, muster.group
        before = self._settled.get(step.group)
        self._settled[step.group] = after
        return None if before is None else compute_moves(before, after)


async def _run_on(side: Side, step: AnyStep) -> Seen | NotInTime:
    """What a side answers; both are always waited for."""
    try:
        return await side.run(step)
    except NotInTime as late:
        return late


def list_last_steps() -> list[AnyStep]:
    """Groups are settled and described, and all offsets fetched."""
    return [
        make(group)
        for group in range(GROUPS)
        for make in (Settle, Look, ClassicLook, lambda group: Fetch(group, None))
    ]


@dataclass
class Peers:
    """The addresses of a Kafka and of a Muster, HOST:PORT."""

    kafka: str
    muster: str
    tally: Tally = field(default_factory=Tally)

    async def run(self, sequence: Sequence) -> Failure | None:
        """A sequence, on groups and topics of its own. One that cannot be run is a failure too."""
        try:
            return await self._run(sequence)
        except (AssertionError, OSError, asyncio.IncompleteReadError) as broken:
            difference = f"{type(broken).__name__}: {broken}"
            return Failure(sequence, len(sequence.steps), Look(0), difference)

    async def _run(self, sequence: Sequence) -> Failure | None:
        prefix = f"s{sequence.seed}.{next(_runs)}"
        connections = [
            await Connection.open(address, "differential", ANSWERED_IN_S)
            for address in (self.kafka, self.muster)
        ]
        try:
            kafka, muster = (
                self._make_side(sequence, prefix, *each)
                for each in zip((self.kafka, self.muster), connections, strict=True)
            )
            return await Pair(sequence, kafka, muster, self.tally).run()
        finally:
            for each in connections:
                each.close()

    @staticmethod
    def _make_side(sequence: Sequence, prefix: str, address: str, connection: Connection) -> Side:
        topics = Topics(prefix)
        classic = ClassicSide(address, connection, prefix, topics, sequence.protocol_type)
        return Side(connection, prefix, sequence.interval_ms, topics, classic)

    async def run_all(
        self,
        sequences: Iterable[Sequence],
        at_once: int,
        note: Callable[[Failure], None] = lambda _: None,
    ) -> list[Failure]:
        """All of them, so many at a time; each failure is noted when it is found."""
        failures: list[Failure] = []
        waiting = iter(sequences)

        async def work() -> None:
            for sequence in waiting:
                failure = await self.run(sequence)
                if failure is not None:
                    note(failure)
                    failures.append(failure)

        await asyncio.gather(*(work() for _ in range(at_once)))
        return sorted(failures, key=lambda failure: failure.sequence.seed)

    async def shrink(self, failure: Failure, within_s: float) -> Failure:
        """A failure with fewer steps; the same one where there is none, or no time."""
        deadline = time.monotonic() + within_s
        best = failure
        size = max(1, best.number // 2)
        while size and time.monotonic() < deadline:
            position = 0
            while position < len(best.sequence.steps) and time.monotonic() < deadline:
                kept = best.sequence.steps[: best.number + 1]
                steps = kept[:position] + kept[position + size :]
                found = await self.run(best.sequence._replace(steps=steps)) if steps else None
                if found is not None:
                    best = found
                else:
                    position += size
            size //= 2
        return best
