"""Every command has exactly one row; commands with a handler belong to a shard."""

from __future__ import annotations

from typing import get_args

from coordinator.core.subscriptions.regex_resolution import InstallRegexes
from coordinator.core.target.target_assignment import InstallTarget
from coordinator.core.target.target_steps import ContinueMoves
from coordinator.dispatch.command_table import _ROWS, COMMANDS, Loading, Route
from coordinator.dispatch.handle import ShardCommand
from model.commands.command import (
    Command,
    ReadCommand,
    ServerCommand,
    TransactionCommand,
)

OF_THE_RUNTIME = {InstallTarget, InstallRegexes, ContinueMoves}


def test_each_command_has_one_row() -> None:
    assert set(COMMANDS) == {*get_args(Command), *OF_THE_RUNTIME}
    assert len(_ROWS) == len(COMMANDS)


def test_handlers_are_of_commands_that_need_but_a_shard() -> None:
    handled = {command for command, row in COMMANDS.items() if row.handler is not None}
    assert handled == {*get_args(ShardCommand), *get_args(TransactionCommand)}


def test_routes_are_of_those_who_take_these_commands() -> None:
    by_route = {
        route: {command for command, row in COMMANDS.items() if row.route is route}
        for route in Route
    }
    assert by_route[Route.READ] == set(get_args(ReadCommand))
    assert by_route[Route.TRANSACTION] == set(get_args(TransactionCommand))
    assert by_route[Route.TOPICS] == set(get_args(ServerCommand))
    of_a_shard = by_route[Route.MEMBER] | by_route[Route.SHARD] | by_route[Route.COMMIT]
    assert of_a_shard == set(get_args(ShardCommand))


def test_what_waits_for_its_group_names_one() -> None:
    for command, row in COMMANDS.items():
        match row.loading:
            case Loading.GROUP:
                assert hasattr(command, "group_id"), command
            case Loading.EACH_GROUP:
                assert hasattr(command, "group_ids"), command
            case Loading.LOG_PARTITION:
                assert hasattr(command, "partition"), command
            case Loading.ALL | Loading.NOTHING:
                pass
