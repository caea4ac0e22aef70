"""Which groups a command is about: those that it names, or those that a list finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from cli.admin.group.group_list import UNCONVERGED_STATES, parse_states
from cli.errors import CommandError, ExitCode
from cli.output import make_printable

if TYPE_CHECKING:
    from cli.admin_client import AdminClient

T = TypeVar("T")


def check_selection(named: Sequence[str], is_all: bool, pattern: str | None, narrow: bool) -> None:
    """Raise ``USAGE`` unless groups are either named or looked for."""
    sought = is_all or pattern is not None or narrow
    if bool(named) == sought:
        raise CommandError(
            "name groups, or choose them with --all, --pattern or --unconverged", ExitCode.USAGE
        )
    if pattern == "":
        raise CommandError("--pattern is empty: --all means all groups", ExitCode.USAGE)


def find_group_ids(client: AdminClient, pattern: str | None, unconverged: bool) -> list[str]:
    """The groups that can be described, by id; share and streams groups cannot."""
    from muster.v1 import admin_pb2

    asked = admin_pb2.ListGroupsRequest(
        states=parse_states(UNCONVERGED_STATES if unconverged else ()),
        types=[admin_pb2.GROUP_TYPE_CONSUMER, admin_pb2.GROUP_TYPE_CLASSIC],
        pattern=pattern or "",
    )
    groups, _ = client.list_groups(asked)
    return [group.group_id for group in groups]


def read_each(
    group_ids: Sequence[str], read: Callable[[str], T], sought: bool
) -> tuple[list[T], list[CommandError]]:
    """Read each group; the errors of those that failed.

    A group that was sought and is gone by now is left out. A server that does not answer ends it.
    """
    found: list[T] = []
    failed = []
    for group_id in group_ids:
        try:
            found.append(read(group_id))
        except CommandError as error:
            if error.exit_code is ExitCode.UNREACHABLE:
                raise
            if not (sought and error.exit_code is ExitCode.NOT_FOUND):
                failed.append(CommandError(f"{group_id}: {error.message}", error.exit_code))
    return found, failed


def raise_failed(failed: Sequence[CommandError], is_one: bool) -> None:
    """Raise what failed: the error of the only group as it is, else ``FAILED`` for all."""
    if not failed:
        return
    if is_one:
        raise failed[0]
    lines = (make_printable(error.message) for error in failed)
    raise CommandError("\n".join(lines), ExitCode.FAILED)
