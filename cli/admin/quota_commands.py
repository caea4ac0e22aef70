"""`muster quota`: client quotas; the same as Kafka's `kafka-configs.sh` manages, and Muster's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from cli.asking import ask
from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    DryRunOption,
    OutputOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    YesOption,
)
from cli.output import Format, Listing, print_listing, print_note

if TYPE_CHECKING:
    from muster.v1 import quota_pb2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Limit users, client ids and addresses: set, list and delete quotas.",
)

COLUMNS: Final = ("USER", "CLIENT-ID", "IP", "QUOTA", "VALUE")
DEFAULT: Final = "<default>"
"""Stands for all that have no quota of their own."""

UserOption: TypeAlias = Annotated[
    str | None, typer.Option("--user", help=f"A user, without `User:`; `{DEFAULT}` for all others.")
]
ClientOption: TypeAlias = Annotated[
    str | None, typer.Option("--client-id", help=f"A client id; `{DEFAULT}` for all others.")
]
IpOption: TypeAlias = Annotated[
    str | None, typer.Option("--ip", help=f"An address; `{DEFAULT}` for all others.")
]


@app.command("set")
def set_quotas(
    quotas: Annotated[
        list[str],
        typer.Argument(
            metavar="QUOTA=VALUE…",
            help="`request_percentage`, `request_rate`, `commit_rate`, `join_rate`, `groups_max`, "
            "`members_max`, `connection_creation_rate`, …",
        ),
    ],
    *,
    user: UserOption = None,
    client_id: ClientOption = None,
    ip: IpOption = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set quotas of a user, a client id, both, or an address."""
    from cli.admin_client import connect

    entity = make_entity(user, client_id, ip)
    changes = dict(map(parse_quota, quotas))
    with connect(server, timeout, command_config) as client:
        client.alter_quotas(entity, changes, validate_only=dry_run)
    if not quiet:
        said = ", ".join(f"{key}={value:g}" for key, value in changes.items())
        print_note(f"{'would be in force' if dry_run else 'in force'}: {said}")


@app.command("list")
def list_quotas(
    *,
    user: UserOption = None,
    client_id: ClientOption = None,
    ip: IpOption = None,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List quotas, all or those of the given names."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        found = client.list_quotas(make_entity(user, client_id, ip, is_filter=True))
    print_listing(compute_listing(found), output)


@app.command()
def delete(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUOTA…]", help="Only these; by default all of the entity."),
    ] = None,
    *,
    user: UserOption = None,
    client_id: ClientOption = None,
    ip: IpOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete quotas of a user, a client id, both, or an address."""
    from cli.admin_client import connect

    entity = make_entity(user, client_id, ip)
    with connect(server, timeout, command_config) as client:
        found = [each for each in client.list_quotas(entity) if is_same(each.entity, entity)]
        for each in found:
            left = [quota for quota in each.quotas if not keys or quota.key in keys]
            del each.quotas[:]
            each.quotas.extend(left)
        if not any(each.quotas for each in found):
            raise CommandError("there is no such quota", ExitCode.NOT_FOUND)
        listing = compute_listing(found)
        if dry_run:
            print_listing(listing, Format.TABLE)
            return
        if not yes:
            ask(COLUMNS, listing.rows, f"Delete these {len(listing.rows)} quotas.")
        changes = {quota.key: None for each in found for quota in each.quotas}
        client.alter_quotas(entity, changes, validate_only=False)
    if not quiet:
        print_note(f"deleted quotas: {len(changes)}")


def make_entity(
    user: str | None, client_id: str | None, ip: str | None, *, is_filter: bool = False
) -> quota_pb2.QuotaEntity:
    """The entity that the options name."""
    from muster.v1 import quota_pb2

    if not is_filter and user is None and client_id is None and ip is None:
        raise CommandError("say whose: --user, --client-id or --ip", ExitCode.USAGE)
    names = {"user": user, "client_id": client_id, "ip": ip}
    for field, name in names.items():
        if name == "":
            option = field.replace("_", "-")
            raise CommandError(
                f"--{option} is empty: write {DEFAULT} for all others", ExitCode.USAGE
            )
    return quota_pb2.QuotaEntity(
        **{field: "" if name == DEFAULT else name for field, name in names.items()}
    )


def parse_quota(text: str) -> tuple[str, float]:
    """The name and the number of ``commit_rate=5``."""
    key, equals, number = text.partition("=")
    try:
        return key.strip(), float(number) if key and equals else float("nope")
    except ValueError:
        raise CommandError(f"{text!r} is not QUOTA=NUMBER", ExitCode.USAGE) from None


def is_same(one: quota_pb2.QuotaEntity, other: quota_pb2.QuotaEntity) -> bool:
    """Whether they have the same types; the names are those that were asked for."""
    fields = ("user", "client_id", "ip")
    return all(one.HasField(field) == other.HasField(field) for field in fields)


def compute_listing(found: Sequence[quota_pb2.EntityQuotas]) -> Listing:
    """A row for each quota."""
    from google.protobuf.json_format import MessageToDict

    items = [MessageToDict(each, preserving_proto_field_name=True) for each in found]
    return Listing(
        "quota.list", COLUMNS, list(_compute_rows(found)), {"entities": items}, "entities"
    )


def _compute_rows(found: Sequence[quota_pb2.EntityQuotas]) -> Iterator[list[object]]:
    for each in found:
        entity = each.entity
        names = [
            _show(entity.user, entity.HasField("user")),
            _show(entity.client_id, entity.HasField("client_id")),
            _show(entity.ip, entity.HasField("ip")),
        ]
        for quota in each.quotas:
            yield [*names, quota.key, f"{quota.value:g}"]


def _show(name: str, is_part: bool) -> str:
    return (name or DEFAULT) if is_part else ""
