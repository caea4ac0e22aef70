"""`muster why` and `muster timeline` against a real ExplainService."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
import yaml

from cli.admin.ledger.ledger_listing import COLUMNS
from cli.admin.ledger.timeline_listing import compute_events
from muster.v1 import explain_pb2, reset_pb2
from tests.unit.cli.admin.group.test_group_list import join
from tests.unit.cli.admin.test_admin_commands import Server, server
from tests.unit.cli.admin.test_group_administration import commit

__all__ = ("server",)


@pytest.fixture
async def busy(server: Server) -> Server:
    """A group with three rebalances: two members joined, a topic grew."""
    await server.run("topic", "create", "orders=4")
    await join(server, "billing", "m1", "m2")
    await server.run("topic", "grow", "orders=6", "--yes")
    return server


async def test_why_tells_of_the_last_rebalance_and_lists_the_others(busy: Server) -> None:
    result = await busy.run("why", "billing")
    assert (result.exit_code, result.error) == (0, "")
    lines = result.out.splitlines()
    assert re.fullmatch(r"\d+ ms ago: topic orders got more partitions|.* s ago: .*", lines[0])
    assert "it goes on" in lines[1]
    assert re.fullmatch(r"waiting for m1 \(client client-7\), acknowledging, \d+ ms", lines[2])
    header, *rows = lines[3:]
    assert header.split()[:4] == ["GROUP", "BEGAN", "EPOCH", "CAUSE"]
    assert [row.split()[2:4] for row in rows] == [
        ["3->4", "partitions_added"],
        ["2->3", "member_joined"],
        ["1->2", "member_joined"],
    ]
    assert rows[1].split()[4:7] == ["m2", "/127.0.0.1", "client-7"]


async def test_a_timeline_is_in_the_order_of_time(busy: Server) -> None:
    printed = json.loads((await busy.run("timeline", "billing", "-o", "json")).out)
    assert (printed["_command"], printed["group_id"]) == ("timeline", "billing")
    found = printed["events"]
    assert {each["event"] for each in found} == {"rebalance"}
    assert [each["epoch"] for each in found] == [2, 3, 4]
    assert [each["ending"] for each in found] == ["converged", "overtaken", "goes_on"]
    assert [each["topic"] for each in found] == [None, None, "orders"]
    assert found[0]["partitions_moved"] == 4
    assert found[1]["ended_ms"] == found[2]["began_ms"]
    assert found[2]["ended_ms"] is None


async def test_a_timeline_has_what_changed_offsets(busy: Server) -> None:
    await commit(busy, "loose", "orders", 3)
    for offset in "34":
        reset = ("group", "reset", "loose", "--topic", "orders:3", "--to-offset", offset, "--yes")
        await busy.run(*reset)
    await busy.run("group", "delete", "loose", "--yes")
    # It never rebalanced, and it is gone.
    printed = json.loads((await busy.run("timeline", "loose", "-o", "json")).out)
    found = [(each["event"], each["offsets"]) for each in printed["events"]]
    assert found == [("offsets_reset", 1), ("offsets_reset", 1), ("group_deleted", 1)]
    wide = await busy.run("timeline", "loose", "-o", "wide")
    (deleted,) = [line for line in wide.out.splitlines() if " group_deleted " in line]
    assert "1 offset, by User:ANONYMOUS, change " in deleted
    last = await busy.run("timeline", "loose", "--limit", "2", "-o", "jsonl")
    assert [json.loads(line)["event"] for line in last.out.splitlines()] == [
        "offsets_reset",
        "group_deleted",
    ]
    assert "there are earlier ones" in last.error
    none = await busy.run("timeline", "loose", "--until", "1970-01-02", "-o", "json")
    assert none.exit_code == 3


def test_events_are_in_the_order_of_time() -> None:
    rebalances = [explain_pb2.Rebalance(began_ms=at_ms, epoch=at_ms) for at_ms in (30, 10)]
    expired = reset_pb2.OFFSET_CHANGE_KIND_EXPIRED
    changes = [
        reset_pb2.OffsetChange(changed_ms=30, kind=expired, offsets=2),
        reset_pb2.OffsetChange(changed_ms=20, kind=99),  # type: ignore[arg-type]
        reset_pb2.OffsetChange(
            changed_ms=5, kind=reset_pb2.OFFSET_CHANGE_KIND_UNDO, log_offset=9, undoes=7
        ),
    ]
    events = compute_events("g", rebalances, changes)
    assert [(event.at_ms, event.content["event"]) for event in events] == [
        (5, "offsets_undone"),
        (10, "rebalance"),
        (20, "offsets_changed"),
        (30, "rebalance"),
        (30, "offsets_expired"),
    ]
    assert all(len(event.row) == len(COLUMNS) for event in events)
    assert events[0].row[-1] == "0 offsets, change 9, undoes 7"


async def test_only_some_of_them(busy: Server) -> None:
    whole = json.loads((await busy.run("timeline", "billing", "-o", "json")).out)["events"]
    last = await busy.run("timeline", "billing", "--limit", "2", "-o", "jsonl")
    assert [json.loads(line)["epoch"] for line in last.out.splitlines()] == [3, 4]
    assert f"--until {whole[1]['began_ms']}" in last.error
    one = await busy.run("why", "billing", "--limit", "1", "-o", "jsonl")
    assert [json.loads(line)["epoch"] for line in one.out.splitlines()] == [4]
    assert one.error == ""
    since = str(whole[2]["began_ms"])
    late = await busy.run("why", "billing", "--since", since, "-o", "jsonl")
    assert json.loads(late.out.splitlines()[0])["epoch"] == 4
    none = await busy.run("why", "billing", "--until", "1970-01-02")
    assert none.out.splitlines()[0] == "billing: no rebalance is known in that time"
    assert none.exit_code == 0


@pytest.mark.parametrize("command", ["why", "timeline"])
async def test_all_formats_say_the_same(busy: Server, command: str) -> None:
    def fixed(text: str) -> str:
        """Without how long the last one takes, which is another time at each call."""
        return re.sub(r'("?took_ms"?: )\d+', r"\1 0", text)

    printed = {
        form: fixed((await busy.run(command, "billing", "-o", form)).out)
        for form in ("json", "yaml", "jsonl", "csv", "wide")
    }
    content = json.loads(printed["json"])
    assert yaml.safe_load(printed["yaml"]) == content
    lines = printed["jsonl"].splitlines()
    items = content["rebalances" if command == "why" else "events"]
    assert [json.loads(line) for line in lines] == items
    header, *rows = csv.reader(io.StringIO(printed["csv"]))
    assert len(rows) == len(lines) == 3
    wide = [line.split() for line in printed["wide"].splitlines()]
    assert header in wide


@pytest.mark.parametrize("command", ["why", "timeline"])
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("nobody",), 3, "nobody"),
        (("billing", "--since", "soon"), 2, "--since 'soon' is not a time"),
        (("billing", "--until", "9" * 30), 2, "too large"),
        (("billing", "--limit", "0"), 2, ""),
    ],
)
async def test_what_is_wrong_is_said_in_one_line(
    busy: Server, command: str, options: tuple[str, ...], code: int, says: str
) -> None:
    result = await busy.run(command, *options)
    assert result.exit_code == code
    assert says in result.error
    if says:
        assert "\n" not in result.error
    assert result.out == ""
