"""Classic members of one side: each has a connection of its own, on which it may wait."""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from gateway.codec.kio_schema import compute_fields, request_type
from model.errors import ErrorCode
from tests.differential.classic.classic_flaws import SESSION_MS, compute_flaw
from tests.differential.classic.classic_members import (
    CONSUMER,
    GIVEN,
    JOINING,
    SYNCING,
    ClassicState,
    Waiting,
    choose_generation,
    find_row,
    read_assignment,
    share_out,
)
from tests.differential.classic.classic_steps import (
    ClassicBeat,
    ClassicCommit,
    ClassicExpire,
    ClassicJoin,
    ClassicLeave,
    ClassicLook,
    ClassicStep,
    ClassicSync,
)
from tests.differential.seen import EMPTY, PREPARING, ClassicRow, ClassicView, Seen
from tests.differential.sides import admin
from tests.differential.sides.topics import SHARED, Topics
from tests.support.waiting import NotInTime
from tests.support.wire.connection import Connection

JOIN, SYNC, BEAT, LEAVE, DESCRIBE_GROUPS = 11, 14, 12, 13, 15
COMMIT, TXN_COMMIT, MARKERS, DESCRIBE = 8, 28, 27, 69
SHORT_SESSION_MS: Final = 500
REBALANCE_TIMEOUT_MS: Final = 300_000
COMPLETING, DEAD = "CompletingRebalance", "Dead"
MAX_SIZE: Final = 4
"""Of a classic group."""

NOT_DONE: Final = -1_000
STILL_WAITS: Final = -1_001
"""In the place of an error code: the member, or the others, could not be made to join."""

_PATIENCE_S = 30.0
_LOG_PARTITIONS = 8
_FIRST_WITH_PROTOCOL: Final = 5
"""The version of SyncGroup that names the protocol."""


def keep_known(key: int, version: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those fields that the version has."""
    known = {row.name for row in compute_fields(request_type(key, version))}
    return {name: value for name, value in values.items() if name in known}


@dataclass
class ClassicSide:
    """``connection`` takes what never waits. ``protocol_type`` is that of all groups."""

    address: str
    connection: Connection
    prefix: str
    topics: Topics
    protocol_type: str = CONSUMER
    members: dict[tuple[int, int], ClassicState] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _connections: dict[tuple[int, int, int], Connection] = field(default_factory=dict)
    _producers: itertools.count[int] = field(default_factory=itertools.count)
    _answers: list[tuple[Any, ...]] = field(default_factory=list)
    _roster: list[tuple[str, bytes]] = field(default_factory=list)

    async def run(self, step: ClassicStep) -> Seen:
        """Do a step, and wait until nothing is under way: what waits, waits for other members."""
        handlers: dict[type[Any], Callable[[Any], Awaitable[Seen]]] = {
            ClassicJoin: self._join,
            ClassicSync: self._sync,
            ClassicBeat: self._beat,
            ClassicLeave: self._leave,
            ClassicCommit: self._commit,
            ClassicExpire: self._expire,
            ClassicLook: self._look,
        }
        seen = await handlers[type(step)](step)
        return await self.add_answers(step.group, seen)

    async def add_answers(self, group: int, seen: Seen) -> Seen:
        """What members were answered that had waited, or asked in this step."""
        await self.quiesce(group)
        answers = tuple(sorted((*seen.answers, *self._answers), key=repr))
        # Who is named in an answer may have been told its id after that.
        named = ((self.name_of(who), said) for who, said in self._roster)
        roster = (*seen.roster, *sorted(named))
        self._answers, self._roster = [], []
        return seen._replace(answers=answers, roster=roster)

    async def end(self) -> None:
        """Nobody waits any more."""
        for state in self.members.values():
            if state.waiting is not None:
                state.waiting.task.cancel()
        for connection in self._connections.values():
            connection.close()

    def member(self, group: int, member: int) -> ClassicState:
        key = group, member
        if key not in self.members:
            self.members[key] = ClassicState(f"c{member}", protocol_type=self.protocol_type)
        return self.members[key]

    def group_id(self, group: int) -> str:
        return f"{self.prefix}-g{group}"

    def name_of(self, member_id: str) -> str:
        """An id without what the side made up: the process that was told it, if any was."""
        return self._names.get(member_id) or GIVEN.sub("", member_id)

    def list_of(self, group: int) -> list[tuple[int, ClassicState]]:
        """The members of a group by number."""
        found = sorted((key, state) for key, state in self.members.items() if key[0] == group)
        return [(member, state) for (_, member), state in found]

    def leader_of(self, group: int) -> ClassicState | None:
        """As far as the members know, of the highest generation."""
        states = [state for _, state in self.list_of(group) if state.is_in]
        newest = max((state.generation for state in states), default=-1)
        leaders = [each for each in states if each.is_leader and each.generation == newest]
        return leaders[0] if leaders else None

    # ---------------------------------------------------------------------------------- waiting

    async def _ask(self, key: int, version: int, values: Mapping[str, Any]) -> Any:
        return await self.connection.ask(key, version, **keep_known(key, version, values))

    async def _send(
        self, group: int, member: int, key: int, version: int, values: Mapping[str, Any]
    ) -> None:
        """A request that may wait, on the connection of the member's process."""
        state = self.members[group, member]
        which = group, member, state.life
        if which not in self._connections:
            opened = await Connection.open(self.address, state.client_id, patience_s=None)
            self._connections[which] = opened
        asked = self._connections[which].ask(key, version, **keep_known(key, version, values))
        kind = JOINING if key == JOIN else SYNCING
        state.waiting = Waiting(kind, asyncio.create_task(asked))

    async def quiesce(self, group: int) -> None:
        """Until all are answered that do not wait for other members, and short sessions are over.

        A member that joined with one may have waited for others, and joined in a later step.
        """
        await self._wait_for_answers(group)
        for _, state in self.list_of(group):
            if state.has_short_session and state.waiting is None:
                was_gathering = (await self.describe(group)).is_gathering
                what = f"{state.client_id} did not expire"
                await admin.wait_until(partial(self._is_gone, group, state), what, _PATIENCE_S)
                state.has_short_session = False
                state.forget(ErrorCode.UNKNOWN_MEMBER_ID)
                await self._wait_while_deserted(group, was_gathering=was_gathering)
                await self._wait_for_answers(group)

    async def _wait_while_deserted(self, group: int, *, was_gathering: bool) -> None:
        """A rebalance that nobody is left for ends by a timer, at once; but one that had begun
        before has the time of those who were there, and waits for who was given an id."""
        if was_gathering and any(state.is_pending for _, state in self.list_of(group)):
            return

        async def is_over() -> bool:
            return not (await self.describe(group)).is_deserted

        await admin.wait_until(is_over, f"{self.group_id(group)} stays deserted", _PATIENCE_S)

    async def _wait_for_answers(self, group: int) -> None:
        patience = admin.make_patience(_PATIENCE_S)
        while True:
            self._collect(group)
            waiting = [state for _, state in self.list_of(group) if state.waiting is not None]
            if not waiting:
                return
            view = await self.describe(group)
            self._collect(group)
            left = [state for state in waiting if state.waiting is not None]
            # A view that is older than an answer says nothing of those who wait still.
            is_of_now = not left or len(left) == len(waiting)
            if is_of_now and all(self._may_wait(group, state, view) for state in left):
                return
            if patience.is_over():
                names = [state.client_id for state in left]
                raise NotInTime(f"{names} are not answered: {view}, {self.show(group)}")
            await asyncio.sleep(0.005)

    def _may_wait(self, group: int, state: ClassicState, view: ClassicView) -> bool:
        """Whether the member waits for others, as far as the group shows."""
        assert state.waiting is not None
        states = [each for _, each in self.list_of(group)]
        if not state.waiting.may_wait or find_row(state, view) is None:
            return False
        if state.waiting.kind == SYNCING:
            leader = self.leader_of(group)
            has_led = leader is not None and (leader.waiting is not None or leader.is_synced)
            return view.state == COMPLETING and not has_led
        joining = [each for each in states if each.waiting and each.waiting.kind == JOINING]
        rows = {find_row(each, view) for each in joining}
        is_complete = rows >= set(view.members) and not any(
            each.is_pending and each.waiting is None for each in states
        )
        return view.state == PREPARING and not is_complete

    def _collect(self, group: int) -> None:
        """Take over what was answered."""
        for _, state in self.list_of(group):
            if state.waiting is None or not state.waiting.task.done():
                continue
            kind, answer = state.waiting.kind, state.waiting.task.result()
            state.waiting = None
            if kind == JOINING:
                self._note_join(state, answer)
            else:
                self._note_sync(state, answer)

    def _note_join(self, state: ClassicState, answer: Any) -> None:
        state.note_join(answer)
        code = int(answer.error_code)
        if state.member_id and code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._names[state.member_id] = state.client_id
        state.roster = tuple((each.member_id, each.metadata) for each in answer.members)
        row = (state.client_id, JOINING, code, answer.generation_id)
        version_row = getattr(answer, "protocol_type", None), answer.protocol_name
        given = self.name_of(answer.member_id)
        self._answers.append((*row, *version_row, given))
        if not code and answer.members:
            # Instances are left out: the version that a leader joins with may not have them.
            self._roster += [(each.member_id, each.metadata) for each in answer.members]

    def _note_sync(self, state: ClassicState, answer: Any) -> None:
        state.note_sync(answer)
        given = read_assignment(answer.assignment)
        shown = answer.assignment if given is None else sorted(given)
        names = [getattr(answer, name, None) for name in ("protocol_type", "protocol_name")]
        self._answers.append((state.client_id, SYNCING, int(answer.error_code), *names, shown))

    # ---------------------------------------------------------------------------------- joining

    async def _join(self, step: ClassicJoin) -> Seen:
        state = self.member(step.group, step.member)
        if state.waiting is not None:
            return Seen((NOT_DONE,))
        is_forgetting = await self._is_empty_consumer_group(step.group)
        if step.flaw is not None:
            if is_forgetting:
                return Seen((NOT_DONE,))
            return await self._join_with_a_flaw(step, state)
        if is_forgetting and not state.is_pending:
            state.member_id = ""
        instance = None if step.instance is None else f"{self.prefix}-i{step.instance}"
        if step.is_new or instance != state.instance:
            state.begin_anew()
        state.instance = instance
        said = (state.protocols, state.topics, state.embedded, state.user_data)
        state.protocols, state.embedded = step.protocols, step.embedded
        state.topics = tuple(self.topics.full_name(name) for name in step.topics)
        state.user_data = step.user_data
        says = (state.protocols, state.topics, state.embedded, state.user_data)
        if not step.says_the_same or said != says:
            state.marks += 1
        await self._send_join(step.group, step.member, step.version)
        is_asked_again = state.is_pending and state.waiting is None
        if is_asked_again and not step.stops and step.version >= 4:
            await self._send_join(step.group, step.member, step.version)
        return Seen(())

    async def _is_empty_consumer_group(self, group: int) -> bool:
        """Kafka forgets one, and leaves its records, when it refuses an unknown member id."""
        asked = await self.connection.ask(DESCRIBE, 1, group_ids=(self.group_id(group),))
        return bool(asked.groups[0].group_state == EMPTY)

    async def _send_join(
        self, group: int, member: int, version: int = 9, session_ms: int = SESSION_MS
    ) -> None:
        state = self.members[group, member]
        if await self._finds_no_room(group, state):
            # Kafka goes on waiting for whoever it refuses, up to the rebalance timeout.
            await self._leave(ClassicLeave(group, (member,)))
        else:
            if state.is_back and state.reads_otherwise(await self.describe(group)):
                await self._leave(ClassicLeave(group, (member,), by_instance=True))
            values = self._make_join(group, state, session_ms)
            state.has_short_session = session_ms == SHORT_SESSION_MS
            await self._send(group, member, JOIN, version, values)
        await self.quiesce(group)

    async def _finds_no_room(self, group: int, state: ClassicState) -> bool:
        """Whether as many have joined already as may, and the rebalance waits for this member."""
        kinds = [each.waiting.kind for _, each in self.list_of(group) if each.waiting is not None]
        if not state.member_id or kinds.count(JOINING) < MAX_SIZE:
            return False
        return (await self.describe(group)).state == PREPARING

    def _make_join(self, group: int, state: ClassicState, session_ms: int) -> dict[str, Any]:
        return {
            "group_id": self.group_id(group),
            "session_timeout": session_ms,
            "rebalance_timeout": REBALANCE_TIMEOUT_MS,
            "member_id": state.member_id,
            "group_instance_id": state.instance,
            "protocol_type": state.protocol_type,
            "protocols": [{"name": name, "metadata": state.say(name)} for name in state.protocols],
            "reason": "a step",
        }

    async def _join_with_a_flaw(self, step: ClassicJoin, state: ClassicState) -> Seen:
        flawed = ClassicState(
            state.name,
            protocol_type=self.protocol_type,
            protocols=step.protocols,
            topics=tuple(self.topics.full_name(name) for name in step.topics),
        )
        values = self._make_join(step.group, flawed, SESSION_MS) | compute_flaw(step.flaw)
        answer = await self._ask(JOIN, step.version, values)
        return Seen((int(answer.error_code),))

    # ---------------------------------------------------------------------------------- syncing

    async def _sync(self, step: ClassicSync) -> Seen:
        if step.member is None:
            return await self._sync_all(step.group, step.version)
        state = self.member(step.group, step.member)
        if state.waiting is not None:
            return Seen((NOT_DONE,))
        await self._send_sync(step.group, step.member, step)
        return Seen(())

    async def _sync_all(self, group: int, version: int = 5) -> Seen:
        states = [
            (member, state)
            for member, state in self.list_of(group)
            if state.is_in and not state.is_synced and state.waiting is None
        ]
        for member, state in sorted(states, key=lambda row: row[1].is_leader):
            if state.waiting is None and state.is_in:
                await self._send_sync(group, member, ClassicSync(group, member, version=version))
                await self.quiesce(group)
        return Seen(())

    async def _send_sync(self, group: int, member: int, step: ClassicSync) -> None:
        state = self.members[group, member]
        shares = self._compute_shares(state) if state.is_leader else {}
        assignments = [{"member_id": who, "assignment": given} for who, given in shares.items()]
        protocol = state.protocol_name or "none"
        values = {
            "group_id": self.group_id(group),
            "generation_id": choose_generation(state, step.epoch),
            "member_id": state.member_id,
            "group_instance_id": state.instance,
            "protocol_type": state.protocol_type,
            "protocol_name": "another" if step.says_another_protocol else protocol,
            "assignments": assignments,
        }
        await self._send(group, member, SYNC, step.version, values)
        assert state.waiting is not None
        newest = max(
            each.generation for _, each in self.list_of(group) if each.is_in or each is state
        )
        is_newest = values["generation_id"] == newest
        is_wrong = step.says_another_protocol and step.version >= _FIRST_WITH_PROTOCOL
        state.waiting.may_wait = is_newest and not is_wrong

    def _compute_shares(self, state: ClassicState) -> dict[str, bytes]:
        """The same whoever leads."""
        said = dict(sorted(state.roster, key=lambda row: self.name_of(row[0])))
        if self.protocol_type != CONSUMER:
            return {who: b"share %d" % position for position, who in enumerate(said)}
        return share_out(said, SHARED)

    # --------------------------------------------------------------------- heartbeats and leaving

    async def _beat(self, step: ClassicBeat) -> Seen:
        state = self.member(step.group, step.member)
        if step.is_former and state.former is not None:
            state = state.former
        generation = choose_generation(state, step.epoch)
        return Seen((await self._send_beat(step.group, state, generation, step.version),))

    async def _send_beat(
        self, group: int, state: ClassicState, generation: int, version: int = 4
    ) -> int:
        values = {
            "group_id": self.group_id(group),
            "generation_id": generation,
            "member_id": state.member_id,
            "group_instance_id": state.instance,
        }
        return int((await self._ask(BEAT, version, values)).error_code)

    async def _leave(self, step: ClassicLeave) -> Seen:
        group_id = self.group_id(step.group)
        was_gathering = (await self.describe(step.group)).is_gathering
        states = [self.member(step.group, member) for member in step.members]
        if any(each.waiting is not None and each.waiting.kind == SYNCING for each in states):
            # Kafka never answers the SyncGroup of who is gone.
            return Seen((NOT_DONE,))
        if step.version < 3:
            del states[1:]
            values: dict[str, Any] = {"group_id": group_id, "member_id": states[0].member_id}
            codes = [int((await self._ask(LEAVE, step.version, values)).error_code)]
        else:
            rows = [self._make_leaving(state, step) for state in states]
            answer = await self._ask(LEAVE, step.version, {"group_id": group_id, "members": rows})
            codes = [int(answer.error_code), *(int(row.error_code) for row in answer.members)]
        for state, code in zip(states, codes[-len(states) :], strict=True):
            if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
                state.is_in = state.is_pending = state.is_synced = False
                # An id that is not there any more is asked with now and then.
                state.leader, state.owned = "", frozenset()
        await self._wait_while_deserted(step.group, was_gathering=was_gathering)
        return Seen(tuple(codes))

    @staticmethod
    def _make_leaving(state: ClassicState, step: ClassicLeave) -> dict[str, Any]:
        by_instance = step.by_instance and state.instance is not None
        row = {
            "member_id": "" if by_instance else state.member_id,
            "group_instance_id": state.instance,
        }
        return row | ({"reason": "a step"} if step.version >= 5 else {})

    async def _expire(self, step: ClassicExpire) -> Seen:
        state = self.member(step.group, step.member)
        group, who = step.group, step.member
        if state.waiting is not None or not state.is_in:
            return Seen((NOT_DONE,))
        state.marks += 1
        await self._send_join(group, who, session_ms=SHORT_SESSION_MS)
        for member, other in self.list_of(group):
            is_needed = state.waiting is not None and other.waiting is None
            if is_needed and (other.is_in or other.is_pending):
                await self._send_join(group, member)
        if state.waiting is not None or state.is_in or state.is_refused:
            return Seen((STILL_WAITS,))
        return Seen((0,))

    async def _is_gone(self, group: int, state: ClassicState) -> bool:
        rows = (await self.describe(group)).members
        asked = await self.connection.ask(DESCRIBE, 1, group_ids=(self.group_id(group),))
        others = {each.member_id for each in asked.groups[0].members}
        return state.member_id not in others | {row.member_id for row in rows}

    # ------------------------------------------------------------------------------ commits

    async def _commit(self, step: ClassicCommit) -> Seen:
        state = self.member(step.group, step.member)
        if step.is_former and state.former is not None:
            state = state.former
        row = {"partition_index": 0, "committed_offset": step.offset, "committed_metadata": "m"}
        values = {
            "group_id": self.group_id(step.group),
            "member_id": state.member_id,
            "group_instance_id": state.instance,
            "topics": [{"name": self.topics.full_name(step.topic), "partitions": [row]}],
        }
        generation = choose_generation(state, step.epoch)
        if not step.is_in_transaction:
            values["generation_id_or_member_epoch"] = generation
            answer = await self._ask(COMMIT, step.version, values)
            return Seen(tuple(self._list_codes(answer)))
        producer_id = zlib.crc32(self.prefix.encode()) * 1_000 + next(self._producers)
        who = {"transactional_id": f"tx-{self.prefix}", "producer_id": producer_id}
        values |= who | {"producer_epoch": 0, "generation_id": generation}
        answer = await self._ask(TXN_COMMIT, min(step.version, 4), values)
        codes = self._list_codes(answer)
        if not any(codes):
            codes += await self._end_transaction(producer_id, step.offset % 2 == 0)
        return Seen(tuple(codes))

    @staticmethod
    def _list_codes(answer: Any) -> list[int]:
        return [int(row.error_code) for topic in answer.topics for row in topic.partitions]

    async def _end_transaction(self, producer_id: int, is_committed: bool) -> list[int]:
        log = {"name": "__consumer_offsets", "partition_indexes": tuple(range(_LOG_PARTITIONS))}
        marker = {
            "producer_id": producer_id,
            "producer_epoch": 0,
            "transaction_result": is_committed,
            "topics": [log],
            "coordinator_epoch": 0,
        }
        answer = await self._ask(MARKERS, 1, {"markers": [marker]})
        return [
            int(row.error_code)
            for found in answer.markers
            for topic in found.topics
            for row in topic.partitions
        ]

    # ------------------------------------------------------------------------------ looking

    async def _look(self, step: ClassicLook) -> Seen:
        ask = partial(self.describe, step.group, step.version)
        view = await admin.ask_while(ask, lambda view: view.is_deserted)
        return Seen((), rest=self._show(view))

    async def describe(self, group: int, version: int = 5) -> ClassicView:
        answer = await self._ask(DESCRIBE_GROUPS, version, {"groups": (self.group_id(group),)})
        (found,) = answer.groups
        rows = (
            ClassicRow(
                row.member_id,
                getattr(row, "group_instance_id", None) or "",
                row.client_id,
                row.member_metadata,
                row.member_assignment,
            )
            for row in found.members
        )
        state, kind, protocol = found.group_state, found.protocol_type, found.protocol_data
        return ClassicView(int(found.error_code), state, kind, protocol, tuple(sorted(rows)))

    def _show(self, view: ClassicView) -> ClassicView:
        """Assignments are shown by their partitions, in whichever version they are written."""
        rows = []
        for row in view.members:
            places = read_assignment(row.assignment)
            given = row.assignment if places is None else repr(sorted(places)).encode()
            name = self.name_of(row.member_id)
            rows.append(row._replace(member_id=name, assignment=given))
        return view._replace(members=tuple(sorted(rows)))

    def show(self, group: int) -> str:
        """Where the members believe that they are."""
        rows = [
            f"{state.client_id}@{state.generation}"
            f"{' in' if state.is_in else ''}{' synced' if state.is_synced else ''}"
            f"{' pending' if state.is_pending else ''}{' leads' if state.is_leader else ''}"
            f"{' refused' if state.is_refused else ''}"
            f"{f' waits for {state.waiting.kind}' if state.waiting else ''}"
            for _, state in self.list_of(group)
        ]
        return "; ".join(rows)

    async def settle(self, group: int) -> bool:
        """Each member does once what it is told; whether nothing was new."""
        await self.quiesce(group)
        is_quiet = not await self._rejoin_after_downgrade(group)
        for member, state in self.list_of(group):
            if state.waiting is None and state.is_refused:
                # What it says cannot be, and what it was before is in the way of the others.
                await self._leave(ClassicLeave(group, (member,), by_instance=True))
                state.is_refused, is_quiet = False, False
            elif state.waiting is None and (state.is_in or state.is_pending):
                is_quiet &= await self._obey(group, member, state)
        is_quiet &= not await self._rejoin_after_downgrade(group)
        before = [state.is_synced for _, state in self.list_of(group)]
        await self._sync_all(group)
        is_quiet &= before == [state.is_synced for _, state in self.list_of(group)]
        self._answers, self._roster = [], []
        return is_quiet and all(state.waiting is None for _, state in self.list_of(group))

    async def _rejoin_after_downgrade(self, group: int) -> bool:
        """A member that was told no leader says something new: whether there is one.

        Its join made the group a classic one, which then rebalances, or does not: so it does.
        """
        members = [
            (member, state)
            for member, state in self.list_of(group)
            if state.is_in and not state.is_synced and not state.leader and state.waiting is None
        ]
        if not members or (await self.describe(group)).state == DEAD:
            return False
        for member, state in members:
            state.marks += 1
            await self._send_join(group, member)
        return True

    async def _obey(self, group: int, member: int, state: ClassicState) -> bool:
        code = 0
        if not state.is_pending:
            code = await self._send_beat(group, state, state.generation)
            if not code:
                return state.is_synced
            if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                state.forget(code)
                return False
        await self._send_join(group, member)
        return False
