"""`muster group describe` and `offsets`, now and in the past."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from cli.errors import CommandError, ExitCode
from cli.log.as_of_option import parse_as_of, parse_as_of_option
from muster.v1 import types_pb2
from storage.log.trim import compute_trim_limit
from tests.golden.past_server import PastServer, import_golden, running_past_server
from tests.support.trimming import trim_once
from tests.unit.cli.admin.test_admin_commands import Result, invoke

GROUP = "o08-consumer-uniform"
TRANSACTIONS = "o19-txn-classic"
PARTITION = 47

Run: TypeAlias = Callable[..., Awaitable[Result]]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[PastServer]:
    import_golden(tmp_path / "store")
    async with running_past_server(tmp_path / "store") as running:
        yield running


@pytest.fixture
def run(server: PastServer) -> Run:
    async def run(*arguments: str) -> Result:
        command = ("group", *arguments, "--server", server.target)
        return await asyncio.to_thread(invoke, *command)

    return run


async def test_a_group_is_described_as_it_was(run: Run) -> None:
    now = await run("describe", GROUP)
    assert now.out.splitlines()[0].startswith(f"{GROUP}: Consumer, Empty, group epoch 11, target")
    then = await run("describe", GROUP, "--as-of", "2026-11-20T22:44:17.267Z")
    position, head, _, *members = then.out.splitlines()
    assert position == "as of offset 42 of log partition 47, 2026-11-20T22:44:16.852Z"
    assert head.startswith(f"{GROUP}: Consumer, Stable, group epoch 4, target assignment epoch 4")
    assert len(members) == 3
    for as_of in ("1795214657267", "offset:42"):
        assert (await run("describe", GROUP, "--as-of", as_of)).out == then.out
    content = json.loads((await run("describe", GROUP, "--as-of", "offset:42", "-o", "json")).out)
    assert content["position"] == {
        "partition": PARTITION,
        "offset": "42",
        "timestamp_ms": "1795214656852",
    }


async def test_offsets_are_shown_as_they_were(run: Run) -> None:
    now = await run("offsets", TRANSACTIONS, "-o", "csv")
    assert now.out.splitlines()[:2] == [
        "GROUP,TOPIC,PARTITION,CURRENT-OFFSET,LOG-END-OFFSET,LAG,"
        "CONSUMER-ID,HOST,CLIENT-ID,LEADER-EPOCH,LAG-SECONDS,METADATA,ERROR",
        f"{TRANSACTIONS},t8,0,7002,,,,,,,,tx7,",
    ]
    command = ("offsets", TRANSACTIONS, "--as-of", "1795214674410", "-o", "json")
    plain = json.loads((await run(*command)).out)["offsets"]
    assert {row["metadata"] for row in plain} == {"plain-while-open"}
    stable = json.loads((await run(*command, "--require-stable")).out)["offsets"]
    waiting = [row for row in stable if row["error"] == "UNSTABLE_OFFSET_COMMIT"]
    assert [row["partition"] for row in waiting] == [3, 4, 5, 6]
    assert {row["offset"] for row in waiting} == {None}
    nobody = await run("offsets", "nobody", "--as-of", "0")
    assert nobody.exit_code == 3


async def test_what_cannot_be_told_has_its_exit_code(server: PastServer, run: Run) -> None:
    limit = compute_trim_limit(server.store, PARTITION)  # type: ignore[arg-type]
    assert trim_once(server.store, PARTITION, limit, 2_000)  # type: ignore[arg-type]
    for command in ("describe", "offsets"):
        before = await run(command, GROUP, "--as-of", "offset:1")
        assert before.exit_code == ExitCode.PRECONDITION
        assert "goes back to offset" in before.error
        future = await run(command, GROUP, "--as-of", "offset:100000")
        assert future.exit_code == ExitCode.USAGE
        assert "lies in the future" in future.error
    gone = await run("describe", "nobody", "--as-of", "1795214657267")
    assert gone.exit_code == ExitCode.NOT_FOUND


@pytest.mark.parametrize("text", ["yesterday", "offset:", "offset:-1", "9" * 30, ""])
def test_what_is_neither_time_nor_offset_is_refused(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_as_of(text)
    assert caught.value.exit_code is ExitCode.USAGE


def test_times_offsets_and_nothing() -> None:
    assert parse_as_of_option(None) is None
    assert parse_as_of("offset:7") == types_pb2.AsOf(offset=7)
    assert parse_as_of("1970-01-01T00:00:01Z") == types_pb2.AsOf(timestamp_ms=1_000)
    ago = parse_as_of("90m")
    assert ago is not None
    assert ago.timestamp_ms > 1_700_000_000_000


async def test_a_group_gets_the_offsets_back_that_it_had(run: Run) -> None:
    at = "offset:42"
    then = json.loads((await run("offsets", GROUP, "--as-of", at, "-o", "json")).out)["offsets"]
    await run("delete", GROUP, "--yes")
    gone = await run("reset", GROUP, "--to-as-of", at, "--yes")
    assert gone.exit_code == ExitCode.NOT_FOUND
    back = await run("reset", GROUP, "--to-as-of", at, "--create", "--yes")
    assert back.exit_code == 0, back.error
    now = json.loads((await run("offsets", GROUP, "-o", "json")).out)["offsets"]

    def offsets(rows: list[dict[str, object]]) -> set[tuple[object, ...]]:
        return {(row["topic"], row["partition"], row["offset"]) for row in rows}

    assert offsets(now) == offsets(then) != set()
    never = await run("reset", GROUP, "--to-as-of", "yesterday", "--yes")
    assert never.exit_code == ExitCode.USAGE
    assert "--to-as-of" in never.error
