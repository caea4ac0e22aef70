"""The output formats of `muster group`: the same groups, members and offsets in each."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import yaml

from tests.unit.cli.admin.group.test_group_list import prepare
from tests.unit.cli.admin.test_admin_commands import Server, server

__all__ = ("server",)

COMMANDS = [
    (["list"], "groups", 3),
    (["describe", "big"], "members", 2),
    (["describe", "one", "big"], "groups", 2),
    (["describe", "one", "big", "--members"], "groups", 2),
    (["describe", "--all", "--state"], "groups", 3),
    (["describe", "one", "--offsets"], "offsets", 4),
    (["offsets", "loose"], "offsets", 1),
]
"""Commands, the list in what they print, and how long it is."""


def without_times(printed: Any) -> Any:
    """Without how long members wait, which is another time at each call."""
    match printed:
        case dict():
            return {
                name: without_times(value)
                for name, value in printed.items()
                if name not in ("waited_ms", "left_ms")
            }
        case list():
            return [without_times(each) for each in printed]
        case _:
            return printed


@pytest.mark.parametrize(("command", "items", "count"), COMMANDS)
async def test_yaml_and_json_lines_are_what_json_is(
    server: Server, command: list[str], items: str, count: int
) -> None:
    await prepare(server)
    whole = await server.run("group", *command, "-o", "json")
    assert whole.exit_code == 0, whole.error
    content = without_times(json.loads(whole.out))
    assert content["_command"].startswith("group.")
    assert content["_version"] == 1
    assert len(content[items]) == count
    as_yaml = (await server.run("group", *command, "-o", "yaml")).out
    assert without_times(yaml.safe_load(as_yaml)) == content
    lines = (await server.run("group", *command, "-o", "jsonl")).out.splitlines()
    assert [without_times(json.loads(line)) for line in lines] == content[items]


@pytest.mark.parametrize("command", [command for command, _, _ in COMMANDS])
async def test_csv_is_the_wide_table(server: Server, command: list[str]) -> None:
    await prepare(server)
    wide = (await server.run("group", *command, "-o", "wide")).out.splitlines()
    header, *rows = csv.reader(io.StringIO((await server.run("group", *command, "-o", "csv")).out))
    place = next(
        number for number, line in enumerate(wide) if line.split() == " ".join(header).split()
    )
    assert [" ".join(cell or "-" for cell in row).split() for row in rows] == [
        line.split() for line in wide[place + 1 :]
    ]
    table = (await server.run("group", *command)).out.splitlines()
    shown = next(line.split() for line in table if line.split()[0] == header[0])
    assert shown == " ".join(header).split()[: len(shown)]
