"""`muster group list`: filters, orders, and parts of a long list."""

from __future__ import annotations

import json

import pytest

from model.commands.consumer import ConsumerGroupHeartbeat
from model.ids import GroupId, MemberId, TopicName
from tests.unit.cli.admin.test_admin_commands import CALLER, Result, Server, server
from tests.unit.cli.admin.test_group_administration import commit

__all__ = ("server",)


async def join(server: Server, group: str, *members: str) -> None:
    for member in members:
        await server.runtime.call(
            ConsumerGroupHeartbeat(
                CALLER,
                GroupId(group),
                MemberId(member),
                0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=(TopicName("orders"),),
                owned=(),
            )
        )


async def prepare(server: Server) -> None:
    """``big`` waits for a member to revoke, ``one`` is stable, ``loose`` only has offsets."""
    await server.run("topic", "create", "orders=4")
    await join(server, "one", "m1")
    await join(server, "big", "m1", "m2")
    await commit(server, "loose", "orders", 0)


def names(result: Result) -> list[str]:
    assert result.exit_code == 0, result.error
    return [json.loads(line)["group_id"] for line in result.out.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["big", "loose", "one"]),
        (["--state", "stable"], ["one"]),
        (["--state", "Stable, EMPTY"], ["loose", "one"]),
        (["--state", "Stable", "--state", "Reconciling"], ["big", "one"]),
        (["--type", "Classic"], ["loose"]),
        (["--protocol", "consumer"], ["big", "one"]),
        (["--protocol", ""], ["loose"]),
        (["--pattern", "..."], ["big", "one"]),
        (["--pattern", "o"], []),
        (["--unconverged"], ["big"]),
        (["--unconverged", "--pattern", "one"], []),
        (["--sort", "members"], ["big", "one", "loose"]),
        (["--sort", "state"], ["loose", "big", "one"]),
        (["--sort", "type"], ["loose", "big", "one"]),
        (["--limit", "2"], ["big", "loose"]),
    ],
)
async def test_groups_are_chosen_and_sorted(
    server: Server, options: list[str], expected: list[str]
) -> None:
    await prepare(server)
    assert names(await server.run("group", "list", "-o", "jsonl", *options)) == expected


async def test_a_long_list_is_read_in_parts(server: Server) -> None:
    await prepare(server)
    first = await server.run("group", "list", "--limit", "2", "--sort", "members", "-o", "json")
    content = json.loads(first.out)
    assert [group["group_id"] for group in content["groups"]] == ["big", "one"]
    assert first.error == ""
    token = content["next_page_token"]
    rest = ("group", "list", "--sort", "members", "--page-token", token)
    last = await server.run(*rest, "-o", "json")
    content = json.loads(last.out)
    assert [group["group_id"] for group in content["groups"]] == ["loose"]
    assert content["next_page_token"] == ""
    other = await server.run("group", "list", "--page-token", token)
    assert other.exit_code == 2
    assert "page_token" in other.error


async def test_a_table_that_is_not_all_says_how_to_go_on(server: Server) -> None:
    await prepare(server)
    shown = await server.run("group", "list", "--limit", "1")
    assert [line.split()[0] for line in shown.out.splitlines()] == ["GROUP", "big"]
    _, token = shown.error.split("there are more groups: --page-token ")
    rest = await server.run("group", "list", "--page-token", token.strip())
    assert [line.split()[0] for line in rest.out.splitlines()] == ["GROUP", "loose", "one"]
    assert rest.error == ""


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--state", "stabel"], "'stabel' is no state"),
        (["--state", "unspecified"], "PreparingRebalance"),
        (["--type", "unknown"], "is no type"),
        (["--unconverged", "--state", "Stable"], "leave out --state"),
        (["--pattern", "("], "pattern"),
        (["--pattern", ""], "--pattern is empty"),
        (["--page-token", "%"], "page_token"),
        (["--limit", "0"], "--limit"),
        (["--sort", "lag"], "--sort"),
    ],
)
async def test_what_is_asked_wrongly_is_exit_code_2(
    server: Server, options: list[str], word: str
) -> None:
    refused = await server.run("group", "list", *options)
    assert (refused.exit_code, refused.out) == (2, "")
    assert word in refused.error
