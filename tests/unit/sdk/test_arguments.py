"""What members are made with: what cannot be said to a server is refused where it is set."""

from __future__ import annotations

from typing import Any

import pytest

import muster
from muster.connection import shared_clients
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.test_member import make_member

TOO_LONG_MS = 2**31


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("max_poll_interval_ms", TOO_LONG_MS, ValueError),
        ("max_poll_interval_ms", 5 * 60 * 1e3, TypeError),
        ("max_poll_interval_ms", "5000", TypeError),
        ("max_poll_interval_ms", True, TypeError),
        ("max_poll_interval_ms", 0, ValueError),
        ("rebalance_timeout_ms", TOO_LONG_MS, ValueError),
        ("rebalance_timeout_ms", -1, ValueError),
        ("join_timeout_ms", "1", TypeError),
        ("rack_id", 7, TypeError),
        ("client_id", b"c", TypeError),
        ("instance_id", 1, TypeError),
        ("member_id", 1, TypeError),
        ("server_assignor", None, TypeError),
        ("topic_regex", "\ud800", ValueError),
        ("topics", [b"orders"], TypeError),
        ("assignors", [muster.Assignor], TypeError),
    ],
)
async def test_a_member_says_which_argument_is_wrong(
    argument: str, value: Any, kind: type[Exception]
) -> None:
    arguments = {"topics": ["orders"]} | {argument: value}
    with pytest.raises(kind, match=argument):
        muster.Member("127.0.0.1:1", "g", **arguments)


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("session_timeout_ms", TOO_LONG_MS, ValueError),
        ("session_timeout_ms", 1e4, TypeError),
        ("rebalance_timeout_ms", 0, ValueError),
        ("heartbeat_interval_ms", "3", TypeError),
        ("metadata_refresh_ms", 0, ValueError),
        ("join_timeout_ms", None, TypeError),
        ("rack_id", 7, TypeError),
        ("topics", [7], TypeError),
    ],
)
async def test_a_classic_member_says_so_too(
    argument: str, value: Any, kind: type[Exception]
) -> None:
    arguments = {"topics": ["orders"]} | {argument: value}
    with pytest.raises(kind, match=argument):
        muster.ClassicMember("127.0.0.1:1", "g", **arguments)


async def test_a_group_has_a_name() -> None:
    with pytest.raises(TypeError, match="group_id"):
        muster.Member("127.0.0.1:1", 7, topics=["orders"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="target"):
        muster.Member(50051, "g", topics=["orders"])  # type: ignore[arg-type]


async def test_a_member_that_would_read_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="topics"):
        muster.Member("127.0.0.1:1", "g")


async def test_a_reason_that_cannot_be_said_changes_nothing(stand: Stand) -> None:
    async with make_member(stand) as member:
        await until(lambda: len(member.assignment) == 4)
        assert member._engine is not None
        before = member._engine.membership.join_id
        with pytest.raises(ValueError, match="reason"):
            member.request_assignment(2**31)
        assert member._engine.membership.join_id == before


async def test_a_join_that_cannot_begin_keeps_no_connection(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = make_member(stand)
    monkeypatch.setattr(member, "_start_watchdog", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await member.join()
    assert not shared_clients._SHARED


async def test_a_loop_that_ended_without_a_close_keeps_no_connection(stand: Stand) -> None:
    class Ended:
        def is_closed(self) -> bool:
            return True

    shared_clients._SHARED[(Ended(), stand.target, 0)] = (object(), 1)  # type: ignore[index,assignment]
    async with make_member(stand):
        assert len(shared_clients._SHARED) == 1
