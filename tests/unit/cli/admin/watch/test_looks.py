"""Looks that the server tells of: a stream that ends, a silent one, a server that is older."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from cli.admin.watch.group_stream import GroupStream, SilentServer
from cli.admin.watch.looks import INTERVAL_S, AskedLooks, ToldLooks
from cli.admin.watch.watching import watch
from cli.errors import CommandError, ExitCode
from cli.server_calls import ServerCalls, UnknownCall
from muster.v1 import admin_pb2
from tests.support.waiting import wait_until
from tests.unit.cli.admin.watch.test_group_changes import group
from tests.unit.cli.admin.watch.test_watching import GONE, REFUSED, SILENT, Told

ENDED = CommandError("the server is stopping", ExitCode.UNREACHABLE)
SAID = admin_pb2.Group | CommandError


class FakeStream:
    """Says what it is given; ``heard_s`` is the time when it last had a group."""

    def __init__(self, said: Sequence[SAID], now_s: Callable[[], float]) -> None:
        self._said = list(said)
        self._now_s = now_s
        self.heard_s = float("-inf")
        self.has_heard = False
        self.is_closed = False

    def next(self) -> admin_pb2.Group:
        said = self._said.pop(0)
        if isinstance(said, CommandError):
            raise said
        self.has_heard, self.heard_s = True, self._now_s()
        return said

    def close(self) -> None:
        self.is_closed = True


def run(streams: Sequence[Sequence[SAID]], asked: Sequence[SAID] = ()) -> tuple[Told, float]:
    """Watch these streams one after the other, with patience for 3 s; how long was slept."""
    told, slept_s = Told(), [0.0]
    left = list(streams)
    opened: list[FakeStream] = []
    rest = list(asked)

    def open_stream() -> FakeStream:
        opened.append(FakeStream(left.pop(0), lambda: slept_s[0]))
        return opened[-1]

    def describe() -> admin_pb2.Group:
        said = rest.pop(0)
        if isinstance(said, CommandError):
            raise said
        return said

    def sleep(duration_s: float) -> None:
        slept_s[0] += duration_s

    looks = ToldLooks(open_stream, AskedLooks(describe, 1.0, lambda: slept_s[0], sleep), sleep)
    try:
        watch(looks, told, now_s=lambda: slept_s[0], patience_s=3.0)
    finally:
        looks.close()
        assert all(stream.is_closed for stream in opened)
    assert not left
    return told, slept_s[0]


def test_each_message_is_a_look_at_once() -> None:
    told, slept_s = run([[group(epoch=5), group(epoch=6), GONE]])
    assert told.lines[0] == "begin 5"
    assert told.lines[-1] == "g is gone"
    assert "group epoch 5 -> 6" in told.lines
    assert slept_s == 0


def test_a_stream_that_ends_is_opened_again_at_once() -> None:
    told, slept_s = run([[group(epoch=5), ENDED], [group(epoch=6), GONE]])
    assert "group epoch 5 -> 6" in told.lines
    assert not any(line.startswith("note") for line in told.lines)
    assert slept_s == 0


def test_a_server_that_restarts_is_waited_for() -> None:
    told, slept_s = run([[group(epoch=5), ENDED], [SILENT], [SILENT], [group(epoch=6), GONE]])
    assert [line for line in told.lines if line.startswith("note")] == [
        "note no answer",
        "note the server answers again",
    ]
    assert slept_s == 2 * INTERVAL_S


def test_a_server_that_does_not_come_back_is_not() -> None:
    with pytest.raises(CommandError) as raised:
        run([[group(), ENDED], [SILENT], [SILENT], [SILENT], [SILENT]])
    assert raised.value is SILENT


@pytest.mark.parametrize("error", [SILENT, GONE, REFUSED])
def test_the_error_of_the_first_look_ends_it(error: CommandError) -> None:
    with pytest.raises(CommandError) as raised:
        run([[error]])
    assert raised.value is error


def test_a_right_that_is_taken_away_ends_it() -> None:
    with pytest.raises(CommandError) as raised:
        run([[group(), REFUSED]])
    assert raised.value is REFUSED


def test_an_older_server_is_asked_once_a_second() -> None:
    told, slept_s = run([[UnknownCall("no such call")]], [group(epoch=5), group(epoch=6), GONE])
    assert (told.lines[0], told.lines[-1]) == ("begin 5", "g is gone")
    assert slept_s == 2.0


# --------------------------------------------------------------------------- the server's stream


class FakeCall:
    """A call whose messages come when a test puts them."""

    def __init__(self) -> None:
        self.coming: queue.Queue[admin_pb2.WatchGroupResponse | None] = queue.Queue()

    def __iter__(self) -> Iterator[admin_pb2.WatchGroupResponse]:
        while (message := self.coming.get()) is not None:
            yield message

    def cancel(self) -> None:
        self.coming.put(None)

    def say(self, epoch: int | None, heartbeat_ms: int = 0) -> None:
        message = admin_pb2.WatchGroupResponse(heartbeat_interval_ms=heartbeat_ms)
        if epoch is not None:
            message.group.group_epoch = epoch
        self.coming.put(message)


class FakeCalls:
    server = "here:1"

    @contextmanager
    def errors(self) -> Iterator[None]:
        yield


def open_stream(call: FakeCall, patience_s: float) -> GroupStream:
    return GroupStream(cast(ServerCalls, FakeCalls()), lambda: call, patience_s, lambda: 7.0)


def test_the_newest_of_several_messages_is_kept() -> None:
    call = FakeCall()
    stream = open_stream(call, 30.0)
    call.say(1)
    assert stream.next().group_epoch == 1
    for epoch in range(2, 9):
        call.say(epoch)
    wait_until(call.coming.empty)
    call.say(None)
    wait_until(call.coming.empty)
    assert stream.next().group_epoch == 8
    assert (stream.has_heard, stream.heard_s) == (True, 7.0)
    stream.close()
    with pytest.raises(CommandError, match="has ended the watch"):
        stream.next()


def test_a_server_is_silent_that_lets_its_heartbeat_pass() -> None:
    call = FakeCall()
    stream = open_stream(call, 0.05)
    call.say(1, heartbeat_ms=150)
    assert stream.next().group_epoch == 1
    # A heartbeat is no look.
    call.say(None, 150)
    with pytest.raises(SilentServer, match=r"here:1 did not say anything for 0.2 s"):
        stream.next()
    stream.close()


def test_an_error_of_the_call_is_the_streams() -> None:
    class Failing(FakeCalls):
        @contextmanager
        def errors(self) -> Iterator[None]:
            raise GONE
            yield

    failing: Any = Failing()
    stream = GroupStream(failing, FakeCall, 30.0, lambda: 0.0)
    with pytest.raises(CommandError) as raised:
        stream.next()
    assert raised.value is GONE
