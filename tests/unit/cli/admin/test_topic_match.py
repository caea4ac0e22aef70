"""`muster topic match`: which topics a regular expression matches now."""

from __future__ import annotations

import json

import pytest

from cli.errors import ExitCode
from tests.unit.cli.admin.test_admin_commands import Server, find_free_port, invoke, server

__all__ = ["server"]


async def match(server: Server, pattern: str) -> list[str]:
    found = await server.run("topic", "match", pattern, "-o", "jsonl")
    assert found.exit_code == ExitCode.DONE
    return [json.loads(line)["topic_name"] for line in found.out.splitlines()]


async def test_a_pattern_has_to_match_the_whole_name(server: Server) -> None:
    await server.run("topic", "create", "orders=12", "orders-eu=4", "payments=1")
    assert await match(server, "orders") == ["orders"]
    assert await match(server, "orders.*") == ["orders", "orders-eu"]
    assert await match(server, "rders") == []
    assert await match(server, "(?i)ORDERS|payments") == ["orders", "payments"]
    assert await match(server, "orders|orders-eu") == ["orders", "orders-eu"]
    assert await match(server, r"\w+") == ["orders", "payments"]


async def test_what_is_printed(server: Server) -> None:
    await server.run("topic", "create", "orders=12", "payments=1")
    found = await server.run("topic", "match", "o.*")
    assert [line.split()[:2] for line in found.out.splitlines()] == [
        ["TOPIC", "PARTITIONS"],
        ["orders", "12"],
    ]
    content = json.loads((await server.run("topic", "match", "o.*", "-o", "json", "-q")).out)
    assert content["_command"] == "topic.match"
    assert [topic["num_partitions"] for topic in content["topics"]] == [12]
    none = await server.run("topic", "match", "nothing")
    assert (none.exit_code, none.out.split()) == (0, ["TOPIC", "PARTITIONS", "TOPIC-ID"])


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(unclosed", "missing closing )"),
        ("(?=ahead)x", "Perl syntax"),
        (r"(a)\1", "not a valid regular expression"),
        ("a{1001}", "invalid repeat count"),
        ("", "empty"),
        ("a" * 5_000, "longer than"),
        ("\udc80", "not valid UTF-8"),
    ],
)
def test_patterns_that_are_none_never_reach_a_server(pattern: str, reason: str) -> None:
    address = f"127.0.0.1:{find_free_port()}"
    refused = invoke("topic", "match", pattern, "--server", address)
    assert refused.exit_code == ExitCode.USAGE
    assert reason in refused.error
    assert "\n" not in refused.error


def test_a_server_that_is_not_there() -> None:
    address = f"127.0.0.1:{find_free_port()}"
    result = invoke("topic", "match", "orders", "--server", address)
    assert result.exit_code == ExitCode.UNREACHABLE
