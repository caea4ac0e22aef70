"""An application with the real SDK: joins, works on what it owns, commits, leaves, comes again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeAlias

from muster import ClassicMember, Member, MusterError, TopicPartition
from muster.engine import Engine
from muster.membership import Partitions
from tests.sim.checkers.violations import Violation
from tests.sim.sessions.faults import Faults
from tests.sim.sessions.ledger import Ledger, Place
from tests.sim.sessions.machines.interrupt import Interrupted, interrupt, uncancelled
from tests.sim.sessions.machines.loop import Machine, VirtualLoop
from tests.sim.sessions.owners import Holding
from tests.sim.sessions.verdicts import check

AnyMember: TypeAlias = Member | ClassicMember
_COMMIT_TIMEOUT_MS = 6_000
_LAST_COMMIT_TIMEOUT_MS = 2_000
_TURNS_TO_CALL = 3


class Surroundings(Protocol):
    """What an application is in."""

    loop: VirtualLoop
    random: Random
    faults: Faults
    ledger: Ledger

    on_joined: Callable[[Application], None]
    """Called when the server has taken it in."""

    def note(self, what: str) -> None: ...

    def on_gained(self) -> None:
        """Somebody owns more than before."""

    def watch_frames(self, machine: Machine, on_frame: Callable[[], None]) -> None:
        """Calls back for each frame that comes to the machine from now on."""

    def note_read(self, place: Place) -> None:
        """A partition was read: an offset of it was fetched or committed by its owner."""


@dataclass(frozen=True)
class Options:
    """What kind of application it is."""

    group: str
    topics: tuple[str, ...]
    is_classic: bool
    rebalance_timeout_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignors: tuple[str, ...]
    max_poll_interval_ms: int | None
    pace_s: float
    lives_s: float
    """How long it is in the group each time, about."""


class Application:
    """One worker. What it knows of itself is what the checkers go by."""

    def __init__(
        self, name: str, machine: Machine, target: str, options: Options, around: Surroundings
    ) -> None:
        self.name = name
        self.machine = machine
        self.group = options.group
        self.options = options
        self.member: AnyMember | None = None
        self.is_ending = False
        self.is_done = False
        self.joined_s: float | None = None
        self._target = target
        self._around = around
        self._random = around.random
        self._faults = around.faults
        self._view: Context = machine.context.copy()
        self._positions: dict[TopicPartition, int] = {}
        self._tokens: dict[TopicPartition, object] = {}
        self._end = asyncio.Event()
        self._polls_again_s = 0.0
        self._member_id = ""
        self._task = asyncio.get_running_loop().create_task(self._run())

    # ------------------------------------------------------------------------ of the checkers

    def believes(self) -> Collection[Holding]:
        """What it owns at this moment, as it would say itself, by its own clock."""
        member = self.member
        if member is None or self.machine.is_dead:
            return ()
        return self._view.run(_look, member)

    def speaks_as(self) -> str:
        """The member id that it uses; empty for none."""
        return "" if self.member is None or self.machine.is_dead else self.member.member_id

    def end(self) -> None:
        """It leaves, and does not come back."""
        self.is_ending = True
        self._end.set()

    # ------------------------------------------------------------------------------ its life

    async def _run(self) -> None:
        try:
            while not self.is_ending:
                await self._live()
                if not self.is_ending:
                    await self._sleep(self._random.uniform(0.05, 2.0))
        except Violation as violation:
            self._around.loop.fail(violation)
        self.is_done = True

    async def _live(self) -> None:
        """From a join to the end of that member."""
        member = self._make()
        self.member = member
        self._member_id = ""
        self._note("joins")
        try:
            await self._maybe_interrupted("cancelled join", member.join(), 0.5)
        except (MusterError, Interrupted) as error:
            self._note(f"has not joined: {type(error).__name__}")
            self._forget()
            return
        self._note("joined")
        self.joined_s = self._around.loop.time()
        self._around.on_joined(self)
        worker = asyncio.get_running_loop().create_task(self._work(member))
        await self._wait_for_end()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        self._note("closes")
        try:
            await self._maybe_interrupted("cancelled close", member.close(), 0.5)
        except (MusterError, Interrupted) as error:
            self._note(f"has not closed: {type(error).__name__}")
        self._forget()

    def _forget(self) -> None:
        self.member = self.joined_s = None
        self._tokens.clear()
        self._positions.clear()
        self._note("is out")

    async def _wait_for_end(self) -> None:
        lives_s = self._random.uniform(0.3, 2.0) * self.options.lives_s
        try:
            async with asyncio.timeout(lives_s if not self._faults.is_healed else None):
                await self._end.wait()
        except TimeoutError:
            if self._faults.is_healed:
                # Who was to go while faults were on stays: somebody must be there.
                await self._end.wait()

    def _make(self) -> AnyMember:
        options = self.options
        if options.is_classic:
            return ClassicMember(
                self._target,
                options.group,
                topics=options.topics,
                assignors=options.assignors,
                on_assigned=self._on_assigned,
                on_revoked=self._on_revoked,
                on_lost=self._on_lost,
                session_timeout_ms=options.session_timeout_ms,
                rebalance_timeout_ms=options.rebalance_timeout_ms,
                heartbeat_interval_ms=options.heartbeat_interval_ms,
                metadata_refresh_ms=3_000,
                join_timeout_ms=20_000,
                client_id=self.name,
            )
        return Member(
            self._target,
            options.group,
            topics=options.topics,
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
            max_poll_interval_ms=options.max_poll_interval_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            join_timeout_ms=20_000,
            client_id=self.name,
        )

    async def _maybe_interrupted(
        self, kind: str, awaitable: Awaitable[None], longest_s: float
    ) -> None:
        what = f"{self.name}: {kind.partition(' ')[2]}"
        guarded = uncancelled(what, awaitable)
        if not self._faults.strikes(kind):
            await guarded
            return
        self._note(kind)
        await interrupt(guarded, self._random, longest_s, self._watch_frames)

    def _watch_frames(self, on_frame: Callable[[], None]) -> None:
        self._around.watch_frames(self.machine, on_frame)

    # ----------------------------------------------------------------------------- callbacks

    def _on_assigned(self, partitions: Partitions) -> None:
        self._note(f"gains {_describe(partitions)}")
        for partition in sorted(partitions):
            self._tokens[partition] = object()
            self._positions.pop(partition, None)
        self._around.on_gained()

    async def _on_revoked(self, partitions: Partitions) -> None:
        self._note(f"gives up {_describe(partitions)}")
        member = self.member
        last = {
            partition: self._positions[partition]
            for partition in sorted(partitions)
            if partition in self._positions
        }
        for partition in partitions:
            self._tokens.pop(partition, None)
        if self._faults.strikes("slow revocation"):
            longest_s = self.options.rebalance_timeout_ms / 1000
            await self._sleep(self._random.uniform(0.0, min(0.8 * longest_s, 4.0)))
        for partition in partitions:
            self._positions.pop(partition, None)
        if last and member is not None:
            # What it has read so far; most of it is committed already.
            waits = not self._faults.strikes("commits without waiting")
            timeout_ms = _LAST_COMMIT_TIMEOUT_MS if waits else _COMMIT_TIMEOUT_MS
            committing = asyncio.ensure_future(self._commit(member, last, timeout_ms))
            if waits:
                await committing
        if self._faults.strikes("callback raises"):
            raise RuntimeError("the application fails in on_revoked")

    def _on_lost(self, partitions: Partitions) -> None:
        self._note(f"loses {_describe(partitions)}")
        for partition in partitions:
            self._tokens.pop(partition, None)
            self._positions.pop(partition, None)

    # ---------------------------------------------------------------------------------- work

    async def _work(self, member: AnyMember) -> None:
        try:
            await self._go_round(member)
        except Violation as violation:
            self._around.loop.fail(violation)

    async def _go_round(self, member: AnyMember) -> None:
        """Fetch an offset, process a record, commit the next one, and so on."""
        while True:
            if self._around.loop.time() >= self._polls_again_s:
                self._poll(member)
            for partition in sorted(member.assignment):
                await self._process(member, partition)
            self._check_id(member)
            if isinstance(member, Member) and self._faults.strikes("asks for an assignment"):
                member.request_assignment(self._random.randint(1, 9))
            await self._sleep(self._random.uniform(0.5, 1.5) * self.options.pace_s)

    def _check_id(self, member: AnyMember) -> None:
        """Nobody else uses its id: whoever says so has heard what the member said before."""
        if isinstance(member, Member):
            is_own = self._member_id in ("", member.member_id)
            check(is_own, "renamed", f"{self.name} is fenced, and nobody else used its id")
            self._member_id = member.member_id

    def _poll(self, member: AnyMember) -> None:
        try:
            member.poll()
        except MusterError as error:
            self._note(f"polls: {type(error).__name__}")
        interval_ms = self.options.max_poll_interval_ms
        if interval_ms is not None and self._faults.strikes("polls too rarely"):
            pause_s = interval_ms / 1000 + self._random.uniform(0.1, 3.0)
            self._polls_again_s = self._around.loop.time() + pause_s

    async def _process(self, member: AnyMember, partition: TopicPartition) -> None:
        token = self._tokens.get(partition)
        if token is None:
            return
        if partition not in self._positions:
            offset = await self._fetch(member, partition)
            if offset is None or not self._still(member, partition, token):
                return
            self._positions[partition] = offset
        await self._sleep(self._random.uniform(0.0, 0.02))
        if not self._still(member, partition, token):
            return
        position = self._positions[partition] = self._positions[partition] + 1
        if not self._faults.strikes("concurrent commits"):
            is_done = await self._commit(member, {partition: position}, _COMMIT_TIMEOUT_MS)
        else:
            earlier = asyncio.ensure_future(
                self._commit(member, {partition: position}, _COMMIT_TIMEOUT_MS)
            )
            # The order of the two is that of their calls, and the first must have been made.
            for _ in range(_TURNS_TO_CALL):
                await asyncio.sleep(0)
            await self._sleep(self._random.choice((0.0, 0.0, 0.001, 0.05)))
            is_done = False
            if self._still(member, partition, token):
                position = self._positions[partition] = position + 1
                is_done = await self._commit(member, {partition: position}, _COMMIT_TIMEOUT_MS)
            is_done = await earlier and is_done
        if not is_done and self._tokens.get(partition) is token:
            self._positions.pop(partition, None)

    def _still(self, member: AnyMember, partition: TopicPartition, token: object) -> bool:
        return self._tokens.get(partition) is token and partition in member.assignment

    async def _fetch(self, member: AnyMember, partition: TopicPartition) -> int | None:
        """The committed offset, 0 for none; ``None`` where it is not known."""
        ledger = self._around.ledger
        place = Place(self.group, partition.topic, partition.partition)
        incarnation, at_least = ledger.incarnation(partition.topic), ledger.highest(place)
        token = self._tokens.get(partition)
        fetching = member.fetch_offsets([partition], timeout_ms=_COMMIT_TIMEOUT_MS)
        what = f"{self.name}: fetch"
        try:
            if self._faults.strikes("cancelled fetch"):
                found = await interrupt(
                    uncancelled(what, fetching), self._random, 0.5, self._watch_frames
                )
            else:
                found = await uncancelled(what, fetching)
        except (MusterError, TimeoutError, Interrupted) as error:
            self._note(f"cannot fetch: {type(error).__name__}")
            return None
        answer = found.get(partition)
        offset = None if answer is None else answer.offset
        if self._tokens.get(partition) is token:
            ledger.check_fetched(place, offset, at_least, incarnation, self.name)
        self._note(f"fetches {partition} {offset}")
        return offset or 0

    async def _commit(
        self, member: AnyMember, offsets: dict[TopicPartition, int], timeout_ms: int
    ) -> bool:
        """Whether it was acknowledged."""
        ledger = self._around.ledger
        before = {partition: ledger.incarnation(partition.topic) for partition in offsets}
        committing = uncancelled(
            f"{self.name}: commit", member.commit(offsets, timeout_ms=timeout_ms)
        )
        try:
            if self._faults.strikes("cancelled commit"):
                await interrupt(committing, self._random, 0.5, self._watch_frames)
            else:
                await committing
        except (MusterError, TimeoutError, Interrupted) as error:
            self._note(f"cannot commit {sorted(offsets.values())}: {type(error).__name__}")
            return False
        except Violation as violation:
            self._around.loop.fail(violation)
            return False
        for partition, offset in offsets.items():
            place = Place(self.group, partition.topic, partition.partition)
            self._note(f"has committed {partition} {offset}")
            try:
                ledger.note_acknowledged(place, offset, before[partition], self.name)
            except Violation as violation:
                self._around.loop.fail(violation)
            self._around.note_read(place)
        return True

    # ----------------------------------------------------------------------------- internals

    async def _sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def _note(self, what: str) -> None:
        self._around.note(f"{self.name} {what}")


def _look(member: AnyMember) -> Collection[Holding]:
    """``assignment``, and of which topic: one that was created again is another one."""
    engine = member._engine
    ids = engine.membership.owned if isinstance(engine, Engine) else {}
    return [(*partition, ids.get(partition, b"")) for partition in member.assignment]


def _describe(partitions: Partitions) -> str:
    return " ".join(f"{topic}-{number}" for topic, number in sorted(partitions))
