"""How long `muster group reset` waits for a reset that goes on."""

from __future__ import annotations

import pytest

from cli.admin.resets import reset_client
from cli.admin.resets.reset_client import connect_for_resets
from cli.errors import CommandError, ExitCode
from cli.server_calls import ServerCalls
from muster.v1 import reset_pb2


def wait(monkeypatch: pytest.MonkeyPatch, found: reset_pb2.GetResetResponse) -> None:
    """Wait for the reset of epoch 5 while the server tells of another state."""
    monkeypatch.setattr(ServerCalls, "call", lambda *_: found)
    with connect_for_resets("127.0.0.1:1", 0.0, None) as client:
        client.wait_until_set("g", 5)


@pytest.mark.parametrize(("epoch", "done"), [(5, True), (6, False), (6, True)])
def test_a_reset_that_is_done(monkeypatch: pytest.MonkeyPatch, epoch: int, done: bool) -> None:
    """The next reset begins only after it."""
    wait(monkeypatch, reset_pb2.GetResetResponse(group_epoch=epoch, done=done))


@pytest.mark.parametrize(("epoch", "done"), [(0, False), (3, False), (3, True)])
def test_a_reset_that_was_given_up(monkeypatch: pytest.MonkeyPatch, epoch: int, done: bool) -> None:
    """There is none any more, or that of another group with the same id."""
    with pytest.raises(CommandError, match="was given up") as error:
        wait(monkeypatch, reset_pb2.GetResetResponse(group_epoch=epoch, done=done))
    assert error.value.exit_code is ExitCode.PRECONDITION


def answer_in_turn(monkeypatch: pytest.MonkeyPatch, *answers: object) -> None:
    """The server's answers, the last of them for ever."""
    left = list(answers)

    def call(*_: object) -> object:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, CommandError):
            raise answer
        return answer

    monkeypatch.setattr(ServerCalls, "call", call)
    monkeypatch.setattr(reset_client, "PAUSE_S", 0.0)


GONE = CommandError("GROUP_ID_NOT_FOUND: The group g does not exist.", ExitCode.NOT_FOUND)
AWAY = CommandError("cannot reach 127.0.0.1:1", ExitCode.UNREACHABLE)


def test_a_group_that_was_deleted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_in_turn(monkeypatch, GONE)
    with (
        connect_for_resets("127.0.0.1:1", 30.0, None) as client,
        pytest.raises(CommandError, match="was given up") as error,
    ):
        client.wait_until_set("g", 5)
    assert error.value.exit_code is ExitCode.PRECONDITION


def test_a_server_that_restarts_goes_on_with_the_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_in_turn(monkeypatch, AWAY, AWAY, reset_pb2.GetResetResponse(group_epoch=5, done=True))
    with connect_for_resets("127.0.0.1:1", 30.0, None) as client:
        client.wait_until_set("g", 5)


def test_a_server_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_in_turn(monkeypatch, AWAY)
    with (
        connect_for_resets("127.0.0.1:1", 0.0, None) as client,
        pytest.raises(CommandError, match="has begun, and the server goes on with it") as error,
    ):
        client.wait_until_set("g", 5)
    assert error.value.exit_code is ExitCode.UNREACHABLE
