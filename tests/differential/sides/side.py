"""One side of a sequence: its connection, what its members were told, and how a step is done."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kio.serial.errors import SerialError

from model.errors import ErrorCode
from tests.differential.classic.classic_side import ClassicSide
from tests.differential.classic.classic_steps import ClassicStep
from tests.differential.seen import EMPTY, GroupView, MemberView, Places, Seen
from tests.differential.sides import admin
from tests.differential.sides.members import MemberState, choose_epoch, compute_flaw
from tests.differential.sides.topics import OWN, Topics
from tests.differential.steps import (
    Beat,
    Chosen,
    Commit,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DropTopic,
    Expire,
    Fetch,
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
from tests.support.waiting import NotInTime
from tests.support.wire.connection import Connection

COMMIT, FETCH, LEAVE_GROUP, LIST_GROUPS, DELETE_GROUPS = 8, 9, 13, 16, 42
OFFSET_DELETE, HEARTBEAT, DESCRIBE = 47, 68, 69
REBALANCE_TIMEOUT_MS: Final = 300_000
SHORT_REBALANCE_TIMEOUT_MS: Final = 500
SHORT_SESSION: Final = {
    "consumer.session.timeout.ms": 400,
    "consumer.heartbeat.interval.ms": 150,
}
SHORT_SESSION_S: Final = SHORT_SESSION["consumer.session.timeout.ms"] / 1_000
RESOLVED_WITHIN_S: Final = 10.5
"""Kafka resolves the patterns of a group at most once in 10 s, and that cannot be set."""

LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
NOT_DONE: Final = -1_000
"""In the place of an error code: neither side was asked."""

_PATIENCE_S = 30.0
_LINGER_S = 1.5
_REJOIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


@dataclass
class Side:
    """``prefix`` sets the groups and topics of this sequence apart from those of all others."""

    connection: Connection
    prefix: str
    interval_ms: int
    topics: Topics
    classic: ClassicSide
    members: dict[tuple[int, int], MemberState] = field(default_factory=dict)
    _resolved_at: dict[int, float] = field(default_factory=dict)

    async def begin(self, groups: int) -> None:
        """Learn the topics; targets wait for the interval in all groups of the sequence."""
        await self.topics.learn(self.connection)
        if self.interval_ms:
            for group in range(groups):
                settings = {"consumer.assignment.interval.ms": self.interval_ms}
                await admin.alter_group(self.connection, self.group_id(group), settings)

    async def end(self) -> None:
        """Delete what is in the way of others, and close."""
        for name in self.topics.list_own():
            # What a starved side leaves over is in nobody's way: the names are of this sequence.
            with suppress(AssertionError, OSError, SerialError):
                await admin.delete_topic(self.connection, name)
        await self.classic.end()
        self.connection.close()

    async def run(self, step: Step | ClassicStep) -> Seen:
        """Do a step."""
        if isinstance(step, ClassicStep):
            return await self.classic.run(step)
        seen = await self._run(step)
        group = getattr(step, "group", None)
        return seen if group is None else await self.classic.add_answers(group, seen)

    async def _run(self, step: Step) -> Seen:
        handlers: dict[type[Any], Callable[[Any], Awaitable[Seen]]] = {
            Join: self._join,
            Beat: self._beat,
            Leave: self._leave,
            Remove: self._remove,
            Commit: self._commit,
            Fetch: self._fetch,
            DeleteOffsets: self._delete_offsets,
            DeleteGroup: self._delete_group,
            CreateTopic: self._change_topic,
            GrowTopic: self._change_topic,
            DropTopic: self._change_topic,
            Expire: self._expire,
            Linger: self._linger,
            Settle: lambda settle: self.settle(settle.group),
            Look: self._look,
        }
        return await handlers[type(step)](step)

    # ---------------------------------------------------------------------------------- names

    def group_id(self, group: int) -> str:
        return f"{self.prefix}-g{group}"

    def member(self, group: int, member: int) -> MemberState:
        key = group, member
        if key not in self.members:
            self.members[key] = MemberState(f"{self.prefix}-g{group}-m{member}")
        return self.members[key]

    def _full_pattern(self, pattern: str | None) -> str | None:
        """Patterns are of the topics of this sequence."""
        return f"{self.prefix}-{pattern}" if pattern else pattern

    def _subscription(self, topics: tuple[str, ...] | None) -> list[str] | None:
        return None if topics is None else [self.topics.full_name(name) for name in topics]

    # ------------------------------------------------------------------------------ heartbeats

    async def _join(self, step: Join) -> Seen:
        state = self.member(step.group, step.member)
        if step.flaw is not None:
            values = self._make_join(step, state) | compute_flaw(step.flaw)
            answer = await self.connection.ask(HEARTBEAT, 1, **values)
            return Seen((int(answer.error_code),))
        instance = None if step.instance is None else f"{self.prefix}-i{step.instance}"
        if state.instance is not None or (instance is not None and state.life + state.epoch):
            # Whoever comes back as a static member is another process, with another id.
            state.life += 1
        state.instance = instance
        state.topics, state.assignor = step.topics, step.assignor
        # A pattern that is not named in a join stays what it was.
        state.pattern = "" if step.pattern is None and state.pattern else step.pattern
        return await self._send_join(step.group, state)

    def _make_join(self, step: Join, state: MemberState) -> dict[str, Any]:
        return {
            "group_id": self.group_id(step.group),
            "member_id": state.member_id,
            "member_epoch": 0,
            "rebalance_timeout": REBALANCE_TIMEOUT_MS,
            "subscribed_topic_names": self._subscription(step.topics),
            "server_assignor": step.assignor,
            "topic_partitions": (),
        }

    def _note_pattern(self, group: int) -> None:
        """Something has to be resolved."""
        self._resolved_at[group] = time.monotonic() + RESOLVED_WITHIN_S

    async def _send_join(self, group: int, state: MemberState) -> Seen:
        state.told = state.previous_told = frozenset()
        answer = await self.connection.ask(
            HEARTBEAT,
            1,
            group_id=self.group_id(group),
            member_id=state.member_id,
            member_epoch=0,
            instance_id=state.instance,
            rebalance_timeout=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self._subscription(state.topics),
            subscribed_topic_regex=self._full_pattern(state.pattern),
            server_assignor=state.assignor,
            topic_partitions=(),
        )
        seen = self._read(state, answer)
        if not answer.error_code:
            state.is_in = True
            if state.pattern:
                self._note_pattern(group)
        return seen

    def _read(self, state: MemberState, answer: Any) -> Seen:
        code = int(answer.error_code)
        if code:
            return Seen((code,))
        if answer.member_epoch < 0:
            return Seen((code,), answer.member_epoch)
        assignment = (
            None if answer.assignment is None else self.topics.read_places(answer.assignment)
        )
        state.note(answer, assignment)
        return Seen((code,), answer.member_epoch, assignment)

    async def _beat(self, step: Beat) -> Seen:
        state = self.member(step.group, step.member)
        state = state.former if step.is_former else state
        owned = self._choose_owned(state, step.owned)
        values: dict[str, Any] = {}
        if step.topics is not None:
            values["subscribed_topic_names"] = self._subscription(step.topics)
        if step.assignor is not None:
            values["server_assignor"] = step.assignor
        if step.pattern is not None:
            values["subscribed_topic_regex"] = self._full_pattern(step.pattern)
        if step.is_full:
            values |= {
                "rebalance_timeout": REBALANCE_TIMEOUT_MS,
                "subscribed_topic_names": self._subscription(step.topics or state.topics or ()),
            }
        epoch = choose_epoch(state, step.epoch)
        seen = await self._send_beat(step.group, state, epoch, owned, **values)
        if seen.codes == (0,) and epoch == LEAVING:
            state.is_in = False
        elif seen.codes == (0,):
            state.topics = state.topics if step.topics is None else step.topics
            if step.pattern is not None:
                state.pattern = step.pattern
                self._note_pattern(step.group)
            state.assignor = step.assignor or state.assignor
        return seen

    async def _send_beat(
        self, group: int, state: MemberState, epoch: int, owned: Places | None, **values: Any
    ) -> Seen:
        answer = await self.connection.ask(
            HEARTBEAT,
            1,
            group_id=self.group_id(group),
            member_id=state.member_id,
            member_epoch=epoch,
            instance_id=state.instance,
            topic_partitions=None if owned is None else self.topics.make_rows(owned),
            **values,
        )
        return self._read(state, answer)

    def _choose_owned(self, state: MemberState, owned: Owned) -> Places | None:
        match owned:
            case Owned.UNSAID:
                return None
            case Owned.TOLD:
                return state.told
            case Owned.PREVIOUS:
                return state.previous_told
            case Owned.LESS:
                return frozenset(sorted(state.told)[1:])
            case Owned.MORE:
                return state.told | frozenset(self._find_others(state)[:1])
            case Owned.NOTHING:
                return frozenset()

    def _find_others(self, state: MemberState) -> list[tuple[str, int]]:
        """Partitions of its topics that it was not told to own."""
        return sorted(
            (topic, partition)
            for topic in state.topics or ()
            for partition in range(self.topics.partitions(topic))
            if (topic, partition) not in state.told
        )

    # --------------------------------------------------------------------------------- leaving

    async def _leave(self, step: Leave) -> Seen:
        state = self.member(step.group, step.member)
        answer = await self.connection.ask(
            HEARTBEAT,
            1,
            group_id=self.group_id(step.group),
            member_id=state.member_id,
            member_epoch=LEAVING_FOR_A_WHILE if step.is_static else LEAVING,
            instance_id=state.instance,
            topic_partitions=None,
        )
        if not answer.error_code:
            state.is_in = False
        return Seen((int(answer.error_code),), answer.member_epoch)

    async def _remove(self, step: Remove) -> Seen:
        state = self.member(step.group, step.member)
        who: dict[str, Any] = {"member_id": state.member_id, "reason": "removed"}
        if step.by_instance:
            who |= {"member_id": "", "group_instance_id": state.instance or "nobody"}
        answer = await self.connection.ask(
            LEAVE_GROUP, 5, group_id=self.group_id(step.group), members=[who]
        )
        codes = tuple(int(row.error_code) for row in answer.members)
        if codes == (0,):
            state.is_in = False
        return Seen((int(answer.error_code), *codes))

    async def _expire(self, step: Expire) -> Seen:
        state = self.member(step.group, step.member)
        group_id = self.group_id(step.group)
        await admin.alter_group(self.connection, group_id, SHORT_SESSION)
        began = time.monotonic()
        seen = await self._send_beat(step.group, state, state.epoch or 1, None)
        if step.is_static and seen.codes == (0,):
            seen = await self._leave(Leave(step.group, step.member, is_static=True))
            is_late = time.monotonic() - began >= SHORT_SESSION_S
            if seen.codes == (ErrorCode.UNKNOWN_MEMBER_ID,) and is_late:
                # Its session ended on the way, which it was to do anyway.
                seen = Seen((0,), LEAVING_FOR_A_WHILE)
        if seen.codes == (0,):
            await self._wait_until_gone(step.group, state)
            state.is_in = False
        await admin.alter_group(self.connection, group_id, dict.fromkeys(SHORT_SESSION))
        return seen

    async def _wait_until_gone(self, group: int, state: MemberState) -> None:
        what = f"{state.member_id} did not expire"
        await admin.wait_until(lambda: self._is_gone(group, state), what, _PATIENCE_S)

    async def _is_gone(self, group: int, state: MemberState) -> bool:
        return state.member_id not in (await self.look(group)).members

    async def _linger(self, step: Linger) -> Seen:
        state, joiner = (self.member(step.group, who) for who in (step.member, step.joiner))
        timeout = {
            "rebalance_timeout": SHORT_REBALANCE_TIMEOUT_MS,
            "subscribed_topic_names": self._subscription(state.topics or ()),
        }
        had = state.told
        first = await self._send_beat(step.group, state, state.epoch or 1, had, **timeout)
        if first.codes != (0,):
            return first
        if not had <= state.told:
            # Its time runs, and nothing else may happen meanwhile.
            await self._wait_until_gone(step.group, state)
            state.is_in = False
            return first
        joined = await self._join(
            Join(step.group, step.joiner, step.topics, None, joiner.assignor or state.assignor)
        )
        told = await self._send_beat(step.group, state, state.epoch, None)
        if not had <= state.told:
            # It has to give something up, and says nothing more.
            await self._wait_until_gone(step.group, state)
        else:
            await asyncio.sleep(_LINGER_S)
        is_gone = await self._is_gone(step.group, state)
        if is_gone:
            state.is_in = False
        else:
            timeout["rebalance_timeout"] = REBALANCE_TIMEOUT_MS
            told = await self._send_beat(step.group, state, state.epoch, state.told, **timeout)
        return Seen((*joined.codes, *told.codes), told.epoch, told.assignment, rest=is_gone)

    # --------------------------------------------------------------------------------- offsets

    async def _commit(self, step: Commit) -> Seen:
        state = None if step.member is None else self.member(step.group, step.member)
        if state is not None and step.is_former:
            state = state.former
        places = self._choose_places(state, step)
        topics: dict[str, list[dict[str, Any]]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(
                {
                    "partition_index": partition,
                    "committed_offset": step.offset,
                    "committed_leader_epoch": step.offset % 3 - 1,
                    "committed_metadata": "m" * step.metadata_chars,
                }
            )
        answer = await self.connection.ask(
            COMMIT,
            step.version,
            group_id=self.group_id(step.group),
            generation_id_or_member_epoch=-1 if state is None else choose_epoch(state, step.epoch),
            member_id="" if state is None else state.member_id,
            group_instance_id=None if state is None else state.instance,
            topics=[
                {**self._name_topic(topic, step.version), "partitions": rows}
                for topic, rows in topics.items()
            ],
        )
        return Seen(
            tuple(
                sorted(int(row.error_code) for topic in answer.topics for row in topic.partitions)
            )
        )

    def _name_topic(self, topic: str, version: int) -> dict[str, Any]:
        if version >= 10:
            return {"topic_id": self.topics.topic_id(topic)}
        return {"name": self.topics.full_name(topic)}

    def _choose_places(self, state: MemberState | None, step: Commit) -> list[tuple[str, int]]:
        named = [(step.topic, partition) for partition in (0, 1)]
        match step.chosen:
            case Chosen.HELD if state is not None and state.told:
                return sorted(state.told)
            case Chosen.OTHER if state is not None:
                return self._find_others(state)[:1] or named
            case Chosen.MISSING:
                return [(step.topic, 999)]
            case _:
                return named

    async def _fetch(self, step: Fetch) -> Seen:
        state = None if step.member is None else self.member(step.group, step.member)
        topics = None
        if step.topic is not None:
            name = self._name_topic(step.topic, step.version)
            topics = [{**name, "partition_indexes": (0, 1, 2)}]
        group: dict[str, Any] = {"group_id": self.group_id(step.group), "topics": topics}
        if state is not None and step.version >= 9:
            group |= {
                "member_id": state.member_id,
                "member_epoch": choose_epoch(state, step.epoch),
            }
        answer = await self.connection.ask(FETCH, step.version, groups=[group])
        (found,) = answer.groups
        return Seen((int(found.error_code),), rest=self._read_offsets(found, step.version))

    def _read_offsets(self, group: Any, version: int) -> list[tuple[Any, ...]]:
        return sorted(
            (
                self.topics.short_name_of(bytes(topic.topic_id))
                if version >= 10
                else self.topics.short_name(topic.name),
                row.partition_index,
                row.committed_offset,
                row.committed_leader_epoch,
                row.metadata,
                int(row.error_code),
            )
            for topic in group.topics
            for row in topic.partitions
        )

    async def _delete_group(self, step: DeleteGroup) -> Seen:
        group_ids = (self.group_id(step.group),)
        answer = await self.connection.ask(DELETE_GROUPS, 2, groups_names=group_ids)
        return Seen(tuple(int(row.error_code) for row in answer.results))

    async def _delete_offsets(self, step: DeleteOffsets) -> Seen:
        rows = [{"partition_index": partition} for partition in range(3)]
        topic = {"name": self.topics.full_name(step.topic), "partitions": rows}
        answer = await self.connection.ask(
            OFFSET_DELETE, 0, group_id=self.group_id(step.group), topics=[topic]
        )
        codes = sorted(int(row.error_code) for topic in answer.topics for row in topic.partitions)
        return Seen((int(answer.error_code), *codes))

    # ---------------------------------------------------------------------------------- topics

    async def _change_topic(self, step: CreateTopic | GrowTopic | DropTopic) -> Seen:
        name = self.topics.full_name(step.topic)
        groups = sorted({group for group, _ in self.members})
        for group in groups:
            await self.settle(group)
        before = {group: await self.look(group) for group in groups}
        if any(self._is_asleep(group, before[group]) for group in groups):
            return Seen((NOT_DONE,))
        match step:
            case CreateTopic():
                code = await admin.create_topic(self.connection, name, step.partitions)
            case GrowTopic():
                count = self.topics.partitions(step.topic) + step.by
                code = await admin.grow_topic(self.connection, name, count)
            case DropTopic():
                code = await admin.delete_topic(self.connection, name)
        if code:
            return Seen((code,))
        await self.topics.learn(self.connection)
        if isinstance(step, DropTopic):
            await self._wait_until_offsets_are_gone(groups, step.topic)
        for group in groups:
            if any(state.pattern for (of, _), state in self.members.items() if of == group):
                self._note_pattern(group)
            subscribed = any(name in row.topics for row in before[group].members.values())
            await self.settle(group, before[group].group_epoch if subscribed else -1)
        return Seen((code,))

    def _is_asleep(self, group: int, view: GroupView) -> bool:
        """Has members, and none that would send Kafka the heartbeat that it waits for."""
        states = (state for (of, _), state in self.members.items() if of == group)
        return bool(view.members) and not any(state.is_in for state in states)

    async def _wait_until_offsets_are_gone(self, groups: Iterable[int], topic: str) -> None:
        async def are_gone() -> bool:
            for group in groups:
                found = await self._fetch(Fetch(group, None))
                if any(row[0] == topic for row in found.rest):
                    return False
            return True

        await admin.wait_until(are_gone, f"offsets of {topic} are still there")

    # --------------------------------------------------------------------------------- looking

    async def _look(self, step: Look) -> Seen:
        return Seen((), group=await self.look(step.group))

    async def look(self, group: int) -> GroupView:
        answer = await self.connection.ask(DESCRIBE, 1, group_ids=(self.group_id(group),))
        (found,) = answer.groups
        members = {
            self.classic.name_of(member.member_id): MemberView(
                member.member_epoch,
                member.instance_id or "",
                frozenset(member.subscribed_topic_names),
                member.subscribed_topic_regex or "",
                self.topics.read_places(member.assignment),
                self.topics.read_places(member.target_assignment),
            )
            for member in found.members
        }
        return GroupView(
            int(found.error_code),
            found.group_state,
            found.group_epoch,
            found.assignment_epoch,
            found.assignor_name,
            members,
        )

    async def listed(self) -> dict[str, tuple[str, str, str]]:
        """The groups of this sequence, as ListGroups has them."""
        answer = await self.connection.ask(LIST_GROUPS, 5)
        return {
            row.group_id: (row.protocol_type, row.group_state, row.group_type)
            for row in answer.groups
            if row.group_id.startswith(f"{self.prefix}-")
        }

    async def settle(self, group: int, above_epoch: int = -1) -> Seen:
        """Every member does as it is told, until nothing is new any more."""
        states = [state for (of, _), state in sorted(self.members.items()) if of == group]
        patience = admin.make_patience(_PATIENCE_S)
        quiet = 0
        while quiet < 2:
            is_quiet = True
            for state in states:
                if state.is_in:
                    is_quiet &= await self._obey(group, state)
            is_quiet &= await self.classic.settle(group)
            view = await self.look(group)
            is_quiet &= time.monotonic() >= self._resolved_at.get(group, 0.0)
            if any(state.is_in for state in states):
                is_quiet &= view.group_epoch > above_epoch
                is_quiet &= view.assignment_epoch == view.group_epoch or view.state == EMPTY
                is_quiet &= self._find_missing(states, view) == set()
            quiet = quiet + 1 if is_quiet else 0
            if patience.is_over() and not is_quiet:
                shown = f"{view}, {self.classic.show(group)}, {await self.classic.describe(group)}"
                raise NotInTime(f"{self.group_id(group)} does not settle: {shown}")
            if not is_quiet and (self.interval_ms or any(state.pattern for state in states)):
                await asyncio.sleep(0.1)
        return Seen((), group=view, is_settled=True)

    def _find_missing(self, states: Iterable[MemberState], view: GroupView) -> set[tuple[str, int]]:
        """What members want and nobody is to get: their patterns are not resolved yet."""
        wanted = {
            (topic, partition)
            for state in states
            if state.is_in and state.pattern
            for topic in OWN
            if re.fullmatch(state.pattern, topic)
            for partition in range(self.topics.partitions(topic))
        }
        given = {place for member in view.members.values() for place in member.target}
        return wanted - {(topic.rstrip("'"), partition) for topic, partition in given}

    async def _obey(self, group: int, state: MemberState) -> bool:
        """A heartbeat as clients send it; whether it brought nothing new."""
        epoch, told = state.epoch, state.told
        seen = await self._send_beat(group, state, epoch, told)
        (code,) = seen.codes
        if code in _REJOIN:
            state.is_in = False
            await self._send_join(group, state)
            return False
        if code:
            state.is_in = False
            return False
        return (state.epoch, state.told) == (epoch, told)
