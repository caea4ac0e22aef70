"""The client's session stream: how it ends while something is still to be heard."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from muster.connection.stream import Stream
from muster.v1 import group_pb2

LEAVE = group_pb2.MemberAction(group_id="g", member_id="m", leave=group_pb2.Leave(member_epoch=-1))
LEFT = group_pb2.SessionResponse(
    updates=[group_pb2.MemberUpdate(group_id="g", member_id="m", left=group_pb2.Left())]
)


class FakeCall:
    """A call whose messages are read by nobody until the test says so."""

    def __init__(self) -> None:
        self.written: list[group_pb2.SessionRequest] = []
        self.is_cancelled = self.is_half_closed = False
        self.may_write = asyncio.Event()
        self.responses: asyncio.Queue[group_pb2.SessionResponse | None] = asyncio.Queue()

    async def write(self, message: group_pb2.SessionRequest) -> None:
        await self.may_write.wait()
        self.written.append(message)

    async def done_writing(self) -> None:
        self.is_half_closed = True

    async def read(self) -> group_pb2.SessionResponse | None:
        return await self.responses.get()

    def cancel(self) -> None:
        self.is_cancelled = True


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def make_stream(call: FakeCall) -> tuple[Stream, asyncio.Task[None]]:
    stream = Stream(cast(Any, call), lambda response: None)
    return stream, asyncio.create_task(stream.run())


async def test_a_leave_that_is_being_written_is_not_cancelled() -> None:
    call = FakeCall()
    stream, run = make_stream(call)
    stream.send(LEAVE)
    await settle()
    stream.finish()
    assert stream.is_ending
    assert not call.is_cancelled
    call.may_write.set()
    await settle()
    assert [len(message.actions) for message in call.written] == [1]
    assert call.is_half_closed
    assert not call.is_cancelled
    call.responses.put_nowait(None)
    await run


async def test_a_leave_that_is_not_answered_is_not_cancelled() -> None:
    """What a server has not read when the stream is cancelled, it never reads."""
    call = FakeCall()
    call.may_write.set()
    stream, run = make_stream(call)
    stream.send(LEAVE)
    await settle()
    assert len(call.written) == 1
    stream.finish()
    stream.finish()
    await settle()
    assert call.is_half_closed
    assert not call.is_cancelled
    call.responses.put_nowait(None)
    await run


async def test_a_stream_on_which_every_leave_is_answered_ends_at_once() -> None:
    call = FakeCall()
    call.may_write.set()
    stream, run = make_stream(call)
    stream.send(LEAVE)
    await settle()
    call.responses.put_nowait(LEFT)
    await settle()
    stream.finish()
    assert call.is_cancelled
    assert not stream.is_ending
    call.responses.put_nowait(None)
    await run
