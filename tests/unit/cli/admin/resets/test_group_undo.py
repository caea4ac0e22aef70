"""`muster group undo` against a real server with its log on disk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from model.ids import GroupId, LogPartition, compute_log_partition
from muster.v1 import reset_pb2
from storage.log.trim import compute_trim_limit
from tests.golden.kafka_log import PARTITIONS
from tests.golden.past_server import PastServer, running_past_server
from tests.support.trimming import trim_once
from tests.unit.cli.admin.test_admin_commands import Result, invoke
from wording.undos import describe_undo

Run: TypeAlias = Callable[..., Awaitable[Result]]
ORDERS = ("orders,0,10\n", "orders,1,11\n")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[PastServer]:
    async with running_past_server(tmp_path / "store") as running:
        yield running


@pytest.fixture
async def run(server: PastServer, tmp_path: Path) -> Run:
    """Group g has orders-0 at 10 and orders-1 at 11, by a reset."""

    async def run(*arguments: str) -> Result:
        return await asyncio.to_thread(invoke, *arguments, "--server", server.target)

    assert (await run("topic", "create", "orders=2")).exit_code == 0
    (tmp_path / "plan.csv").write_text("".join(ORDERS))
    plan = ("--from-file", str(tmp_path / "plan.csv"), "--create", "--yes")
    assert (await run("group", "reset", "g", *plan)).exit_code == 0
    return run


async def list_offsets(run: Run) -> list[list[str]]:
    shown = await run("group", "offsets", "g", "-o", "csv")
    return [line.split(",")[1:4] for line in shown.out.splitlines()[1:]]


async def list_changes(run: Run) -> list[dict[str, object]]:
    shown = await run("group", "undo", "g", "--list", "-o", "json")
    found: list[dict[str, object]] = json.loads(shown.out)["changes"]
    return found


BEFORE = [["orders", "0", "10"], ["orders", "1", "11"]]


async def test_a_deleted_group_is_previewed_and_comes_back(run: Run) -> None:
    assert (await run("group", "delete", "g", "--yes")).exit_code == 0
    tried = await run("group", "undo", "g", "--dry-run", "-o", "csv")
    assert (tried.exit_code, tried.error) == (0, "would be undone: 2\n")
    assert tried.out.splitlines() == [
        "GROUP,TOPIC,PARTITION,NEW-OFFSET,CURRENT-OFFSET,CHANGED-OFFSET,LOG-START-OFFSET,"
        "LOG-END-OFFSET,COMMITTED-SINCE,CLAMPED",
        "g,orders,0,10,,,,,,",
        "g,orders,1,11,,,,,,",
    ]
    assert await list_offsets(run) == []
    done = await run("group", "undo", "g", "--yes")
    assert (done.exit_code, done.error) == (0, "undone: 2\n")
    assert await list_offsets(run) == BEFORE


async def test_a_reset_is_undone_after_a_commit_and_one_is_named(run: Run) -> None:
    first = (await list_changes(run))[0]["change"]
    for offset in ("5", "6"):
        done = await run("group", "seek", "g", "orders:0", "--to", offset, "--yes")
        assert done.exit_code == 0
    changes = await list_changes(run)
    assert [each["kind"] for each in changes] == ["reset"] * 3
    assert changes[-1]["change"] == first
    shown = await run("group", "undo", "g", "--change", str(changes[1]["change"]), "--dry-run",
                      "-o", "json")  # fmt: skip
    (row,) = json.loads(shown.out)["offsets"]
    offsets = [row[name] for name in ("new_offset", "current_offset", "changed_offset")]
    assert (offsets, row["committed_since"]) == ([10, 6, 5], "yes")
    removed = await run("group", "undo", "g", "--change", str(first), "--yes", "-o", "json")
    assert {row["new_offset"] for row in json.loads(removed.out)["offsets"]} == {None}
    assert await list_offsets(run) == []
    assert (await run("group", "undo", "g", "--yes", "--topic", "orders:1")).exit_code == 0
    assert await list_offsets(run) == [["orders", "1", "11"]]
    assert (await list_changes(run))[0]["kind"] == "undo"


def test_what_it_asks() -> None:
    change = reset_pb2.OffsetChange(
        changed_ms=1_795_214_656_852,
        kind=reset_pb2.OFFSET_CHANGE_KIND_OFFSETS_DELETED,
        principal="User:a",
    )
    row = reset_pb2.ResetPartition(topic_name="orders", offset_after=7)
    shown = reset_pb2.ResetOffsetsResponse(undone=change, partitions=[row])
    what = "The deletion of offsets of 2026-11-20T22:44:16.852Z by User:a will be undone"
    assert describe_undo(shown) == f"{what}."
    shown.partitions[0].offset_before = 3
    shown.live = True
    assert describe_undo(shown) == (
        f"{what}; what was committed since is overwritten. The members give up these partitions "
        "first; then they get them."
    )


async def test_what_cannot_be_undone_has_its_exit_code_and_one_line(
    run: Run, server: PastServer
) -> None:
    nothing = await run("group", "undo", "nobody", "--yes")
    assert (nothing.exit_code, nothing.error) == (
        3,
        "RESOURCE_NOT_FOUND: There is nothing to undo: no change of the offsets of group nobody "
        "is known.",
    )
    listed = await run("group", "undo", "nobody", "--list")
    assert listed.exit_code == 0
    assert "no change of the offsets of nobody is known" in listed.error
    for arguments in (("--list", "--yes"), ("--change", "-1"), ("--list", "--change", "1")):
        assert (await run("group", "undo", "g", *arguments)).exit_code == 2
    other = await run("group", "undo", "g", "--topic", "orders:7", "--yes")
    assert other.exit_code == 3
    first = (await list_changes(run))[0]["change"]
    await run("group", "seek", "g", "orders:0", "--to", "5", "--yes")
    partition = LogPartition(compute_log_partition(GroupId("g"), PARTITIONS))
    for _ in server.store.write_checkpoint(100):
        pass
    assert trim_once(server.store, partition, compute_trim_limit(server.store, partition))
    gone = await run("group", "undo", "g", "--change", str(first), "--yes")
    assert (gone.exit_code, gone.error.count("\n")) == (3, 0)
    assert f"is known at log offset {first}; the history of the log begins at 2026-" in gone.error
    kept = await run("group", "undo", "g", "--list")
    assert "changes are known since 2026-" in kept.error
    assert len(kept.out.splitlines()) == 2
