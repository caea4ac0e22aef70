"""`muster group config`: what it shows and changes, asks and refuses, against a real server."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml

from tests.unit.cli.admin.test_admin_commands import Result, Server, server

__all__ = ("server",)

SESSION = "consumer.session.timeout.ms"
SIZE = "consumer.max.size"


def rows(result: Result) -> dict[str, list[str]]:
    assert result.exit_code == 0, result.error
    return {name: rest for name, *rest in list(csv.reader(io.StringIO(result.out)))[1:]}


async def test_configs_are_shown_with_their_sources_and_what_the_server_has(
    server: Server,
) -> None:
    await server.run("group", "config", "g", "--set", f"{SIZE}=3", "--yes")
    table = await server.run("group", "config", "g")
    lines = [line.split() for line in table.out.splitlines()]
    assert lines[0] == ["NAME", "VALUE", "SOURCE", "SERVER-VALUE"]
    assert [SIZE, "3", "group", "2147483647"] in lines
    assert [SESSION, "45000", "default", "45000"] in lines


async def test_a_change_shows_what_is_before_and_after(server: Server) -> None:
    done = await server.run(
        "group", "config", "g", "--set", f"{SESSION}=50000", "--set", f"{SIZE}=3", "-y"
    )
    lines = [line.split() for line in done.out.splitlines()]
    assert lines == [
        ["NAME", "NEW-VALUE", "CURRENT-VALUE", "NEW-SOURCE", "CURRENT-SOURCE"],
        [SESSION, "50000", "45000", "group", "default"],
        [SIZE, "3", "2147483647", "group", "default"],
    ]
    assert done.error == "changed: 2\n"
    both = ("--set", f"{SIZE}=4", "--unset", SESSION, "-y", "-o", "csv")
    undone = await server.run("group", "config", "g", *both)
    assert rows(undone) == {
        SIZE: ["4", "3", "group", "group"],
        SESSION: ["45000", "50000", "default", "group"],
    }
    again = await server.run("group", "config", "g", *both)
    assert again.error == "changed: 0\n"
    assert rows(again)[SESSION] == ["45000", "45000", "default", "default"]


async def test_a_dry_run_shows_what_the_change_then_does(server: Server) -> None:
    await server.run("group", "config", "g", "--set", f"{SIZE}=3", "--yes")
    change = ("--unset", SIZE, "--set", f"{SESSION}=50000")
    tried = await server.run("group", "config", "g", *change, "--dry-run", "-o", "csv")
    assert tried.error == "would be changed: 2\n"
    kept = await server.run("group", "config", "g", "-o", "csv")
    assert rows(kept)[SIZE][:2] == ["3", "group"]
    done = await server.run("group", "config", "g", *change, "--yes", "-q", "-o", "csv")
    assert (done.out, done.error) == (tried.out, "")


async def test_it_asks(server: Server) -> None:
    unasked = await server.run("group", "config", "g", "--set", f"{SIZE}=3")
    assert (unasked.exit_code, unasked.out) == (2, "")
    assert "--yes" in unasked.error
    kept = await server.run("group", "config", "g", "-o", "csv")
    assert rows(kept)[SIZE][1] == "default"


async def test_every_format_has_the_same(server: Server) -> None:
    whole = await server.run("group", "config", "g", "-o", "json")
    content = json.loads(whole.out)
    assert (content["_command"], content["group_id"]) == ("group.config", "g")
    lined = await server.run("group", "config", "g", "-o", "jsonl")
    assert [json.loads(line) for line in lined.out.splitlines()] == content["configs"]
    written = await server.run("group", "config", "g", "-o", "yaml")
    assert yaml.safe_load(written.out) == content
    changed = await server.run("group", "config", "g", "--unset", SIZE, "--yes", "-o", "json")
    (change,) = json.loads(changed.out)["changes"]
    assert (change["name"], change["new_source"]) == (SIZE, "default")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "consumer.max.sise=3"], "did you mean consumer.max.size?"),
        (["--unset", "zzz"], "lists all"),
        (["--set", f"{SIZE}=many"], "many"),
        (["--set", f"{SIZE}=0"], "Value must be at least 1"),
        (["--set", f"{SESSION}=1"], "group.consumer.min.session.timeout.ms"),
        (["--set", SIZE], "NAME=VALUE"),
        (["--set", f"{SIZE}=1", "--set", f"{SIZE}=2"], "once"),
        (["--set", f"{SIZE}=1", "--unset", SIZE], "once"),
        (["--set", f"{SIZE}=5", "--set", f"{SESSION}=1"], "min.session"),
    ],
)
async def test_a_wrong_change_is_one_line_and_changes_nothing(
    server: Server, options: list[str], said: str
) -> None:
    for rest in (["--yes"], ["--dry-run"]):
        refused = await server.run("group", "config", "g", *options, *rest)
        assert (refused.exit_code, refused.out) == (2, "")
        assert said in refused.error
        assert len(refused.error.splitlines()) == 1
    kept = await server.run("group", "config", "g", "-o", "csv")
    assert {source for _, source, _ in rows(kept).values()} == {"default"}


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
async def test_nothing_to_change_is_a_usage_error(server: Server, option: str) -> None:
    refused = await server.run("group", "config", "g", option)
    assert (refused.exit_code, refused.out) == (2, "")
    assert "--set" in refused.error


async def test_a_server_that_is_not_there_is_exit_code_5(server: Server) -> None:
    lost = await Server(server.runtime, "127.0.0.1:1").run("group", "config", "g")
    assert lost.exit_code == 5
