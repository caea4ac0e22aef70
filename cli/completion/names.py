"""Names that a server knows, for completion: never an error, and never a long wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from cli.errors import CommandError
from cli.options import DEFAULT_SERVER

if TYPE_CHECKING:
    from cli.admin_client import AdminClient

_WAIT_S: Final = 2.0
_NAMES_MAX: Final = 500
"""More would not be read."""


def complete_groups(context: typer.Context, incomplete: str) -> Sequence[str]:
    """The ids of groups that begin so."""

    def find(client: AdminClient) -> Sequence[str]:
        import re2

        from muster.v1 import admin_pb2

        asked = admin_pb2.ListGroupsRequest(pattern=f"{re2.escape(incomplete)}(?s:.*)")
        found, _ = client.list_groups(asked, _NAMES_MAX)
        return [group.group_id for group in found]

    return _ask(context, find)


def complete_topics(context: typer.Context, incomplete: str) -> Sequence[str]:
    """The names of topics that begin so."""

    def find(client: AdminClient) -> Sequence[str]:
        names = (topic.topic_name for topic in client.list_topics())
        return [name for name in names if name.startswith(incomplete)][:_NAMES_MAX]

    return _ask(context, find)


def _ask(context: typer.Context, find: Callable[[AdminClient], Sequence[str]]) -> Sequence[str]:
    from cli.admin_client import connect

    given = context.params.get("server"), context.params.get("command_config")
    server = given[0] or os.environ.get("MUSTER_SERVER") or DEFAULT_SERVER
    config = given[1] or os.environ.get("MUSTER_COMMAND_CONFIG")
    try:
        with connect(str(server), _WAIT_S, Path(config) if config else None) as client:
            found = find(client)
    except CommandError:
        return []
    # A shell splits what it is given; what it could not take is left out.
    return [name for name in found if name.isprintable() and not set(name) & set(" \t'\"\\$`")]
