"""What the driver waits for, and what it has a classic member say: each was a race, or a Kafka's
wait of minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tests.differential.classic.classic_members import JOINING, SYNCING, ClassicState, Waiting
from tests.differential.classic.classic_side import (
    COMPLETING,
    DEAD,
    JOIN,
    MAX_SIZE,
    NOT_DONE,
    PREPARING,
    STILL_WAITS,
    ClassicSide,
)
from tests.differential.classic.classic_steps import ClassicExpire, ClassicLeave, ClassicSync
from tests.differential.seen import EMPTY, STABLE, ClassicRow, ClassicView, Seen
from tests.differential.sides.topics import Topics
from tests.support.wire.connection import Connection


class Script(ClassicSide):
    """A side without a server: the state of the group, and what was sent."""

    def __init__(self, *states: str) -> None:
        super().__init__("", Connection(None, None, ""), "p", Topics("p"))  # type: ignore[arg-type]
        self.states = list(states)
        self.sent: list[tuple[str, int]] = []
        self.answers: dict[str, asyncio.Future[Any]] = {}
        self.answered_before_view: list[str] = []
        self.gone_after = 0

    def put(self, number: int, **fields: Any) -> ClassicState:
        """A member that is in."""
        state = self.member(0, number)
        state.member_id, state.is_in, state.generation = f"id{number}", True, 1
        for name, value in fields.items():
            setattr(state, name, value)
        return state

    def let_wait(self, state: ClassicState, kind: str = JOINING) -> None:
        answer = self.answers[state.member_id] = asyncio.get_running_loop().create_future()

        async def wait() -> Any:
            return await answer

        state.waiting = Waiting(kind, asyncio.create_task(wait()))

    async def answer(self, member_id: str) -> None:
        fields = {"member_id": member_id, "leader": "id0", "generation_id": 2, "members": ()}
        fields |= {"error_code": 0, "protocol_name": "range"}
        self.answers[member_id].set_result(SimpleNamespace(**fields))
        for _ in range(3):
            await asyncio.sleep(0)

    async def describe(self, group: int, version: int = 5) -> ClassicView:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        rows = [
            ClassicRow(each.member_id, each.instance or "", each.client_id, each.say("range"), b"")
            for _, each in self.list_of(group)
            if not each.is_pending
        ]
        if self.answered_before_view:
            await self.answer(self.answered_before_view.pop(0))
        return ClassicView(0, state, "consumer", "", tuple(rows))

    async def _send(
        self, group: int, member: int, key: int, version: int, values: Mapping[str, Any]
    ) -> None:
        self.sent.append(("join" if key == JOIN else "sync", member))
        if key != JOIN:
            self.let_wait(self.members[group, member], SYNCING)

    async def _is_gone(self, group: int, state: ClassicState) -> bool:
        self.gone_after -= 1
        return self.gone_after <= 0

    async def _leave(self, step: ClassicLeave) -> Seen:
        self.sent += [("leave", member) for member in step.members]
        return Seen(())


async def test_a_view_that_is_older_than_an_answer_is_asked_for_again() -> None:
    side = Script(PREPARING, COMPLETING)
    for number in (0, 1):
        side.let_wait(side.put(number))
    side.answered_before_view = ["id1", "id0"]
    await side.quiesce(0)
    assert [state.generation for _, state in side.list_of(0)] == [2, 2]


async def test_an_old_version_cannot_say_another_protocol_and_waits_for_the_leader() -> None:
    for version, may_wait in ((5, False), (4, True)):
        side = Script(COMPLETING)
        state = side.put(1)
        await side._send_sync(0, 1, ClassicSync(0, 1, version=version, says_another_protocol=True))
        assert state.waiting is not None
        assert state.waiting.may_wait == may_wait
        state.waiting.task.cancel()


async def test_who_finds_no_room_in_a_rebalance_leaves() -> None:
    side = Script(PREPARING)
    for number in range(MAX_SIZE):
        side.let_wait(side.put(number))
    last = side.put(MAX_SIZE, is_in=False, is_pending=True)
    await side._send_join(0, MAX_SIZE)
    assert side.sent == [("leave", MAX_SIZE)]
    last.member_id, last.is_pending = "", False
    await side._send_join(0, MAX_SIZE)
    assert side.sent[1:] == [("join", MAX_SIZE)], "who was given no id may be refused"
    await side.end()


async def test_whose_join_made_the_group_a_classic_one_says_something_new() -> None:
    for state, is_synced, leader, marks in (
        (STABLE, False, "", 1),
        (PREPARING, False, "", 1),
        (DEAD, False, "", 0),
        (STABLE, True, "", 0),
        (STABLE, False, "id0", 0),
    ):
        side = Script(state)
        member = side.put(0, is_synced=is_synced, leader=leader)
        assert await side._rejoin_after_downgrade(0) == bool(marks)
        assert member.marks == marks
        assert side.sent == [("join", 0)] * marks


async def test_an_instance_that_comes_back_with_other_topics_leaves_first() -> None:
    for state, topics, leaves in (
        (STABLE, ("a",), False),
        (STABLE, ("a", "b"), True),
        (PREPARING, ("a", "b"), False),
    ):
        side = Script(state)
        side.put(0, instance="i", topics=("a",), embedded=3)
        side.put(1, member_id="", is_in=False, instance="i", topics=topics, embedded=3)
        await side._send_join(0, 1)
        assert side.sent == [("leave", 1)] * leaves + [("join", 1)]


async def test_who_waits_for_a_sync_cannot_leave() -> None:
    side = Script(COMPLETING)
    side.let_wait(side.put(1), SYNCING)
    seen = await ClassicSide._leave(side, ClassicLeave(0, (1,)))
    assert seen.codes == (NOT_DONE,)
    await side.end()


async def test_whose_join_is_refused_has_no_short_session_to_wait_for() -> None:
    side = Script(STABLE)
    side.put(0, is_refused=True)
    assert (await side.run(ClassicExpire(0, 0))).codes == (STILL_WAITS,)


async def test_a_short_session_is_waited_for_whenever_it_begins() -> None:
    side = Script(PREPARING, COMPLETING)
    member = side.put(0, has_short_session=True)
    side.let_wait(member)
    side.answered_before_view = ["id0"]
    side.gone_after = 3
    await side.quiesce(0)
    assert not side.gone_after
    assert not member.is_in
    assert not member.has_short_session


async def test_a_rebalance_that_nobody_is_left_for_is_waited_for() -> None:
    side = Script(PREPARING, PREPARING, EMPTY)
    side.put(0, is_in=False, is_pending=True)
    await side._wait_while_deserted(0, was_gathering=False)
    assert side.states == [EMPTY]


async def test_a_rebalance_that_waits_for_an_id_is_not_waited_for() -> None:
    side = Script(PREPARING)
    side.put(0, is_in=False, is_pending=True)
    await asyncio.wait_for(side._wait_while_deserted(0, was_gathering=True), 5)
