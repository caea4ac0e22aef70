"""`muster acl`: who may do what; the same ACLs as Kafka's `kafka-acls.sh` manages."""

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
from cli.output import Format, Listing, make_printable, print_listing, print_note

if TYPE_CHECKING:
    from muster.v1 import access_pb2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Say who may do what: add, list, delete and check ACLs.",
)

COLUMNS: Final = ("PERMISSION", "PRINCIPAL", "HOST", "OPERATION", "RESOURCE", "PATTERN", "NAME")
RESOURCES: Final = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
CLUSTER: Final = "kafka-cluster"

ResourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="`group:orders`, `topic:orders`, `cluster`, …; with `*` at the end a prefix, "
        "`group:*` for all.",
    ),
]
PrincipalArgument = Annotated[
    str, typer.Argument(metavar="PRINCIPAL", help="`User:alice`; `User:*` for everybody.")
]
OperationsArgument = Annotated[
    str, typer.Argument(metavar="OPERATION", help="`read`, or several: `read,describe`; or `all`.")
]
HostOption: TypeAlias = Annotated[
    str, typer.Option("--host", help="Only from this address; by default from any.")
]


@app.command()
def add(
    principal: PrincipalArgument,
    operation: OperationsArgument,
    resource: ResourceArgument,
    *,
    host: HostOption = "*",
    deny: Annotated[bool, typer.Option("--deny", help="Deny it instead of allowing it.")] = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Allow, or deny, a principal operations on a resource."""
    from cli.admin_client import connect
    from muster.v1 import access_pb2

    kind, pattern_type, name = parse_resource(resource)
    acls = [
        access_pb2.Acl(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern_type,
            principal=principal,
            host=host,
            operation=each,
            permission="DENY" if deny else "ALLOW",
        )
        for each in parse_operations(operation)
    ]
    with connect(server, timeout, command_config) as client:
        client.create_acls(acls)
    if not quiet:
        print_note(f"in force: {'; '.join(render(acl) for acl in acls)}")


@app.command("list")
def list_acls(
    principal: Annotated[
        str | None, typer.Option("--principal", help="Only those of this principal.")
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", help="Only those that hold for this resource: `group:orders`."),
    ] = None,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List ACLs."""
    from cli.admin_client import connect

    means = make_filter(principal, resource)
    with connect(server, timeout, command_config) as client:
        found = client.list_acls(means)
    print_listing(compute_listing(found), output)


@app.command()
def delete(
    principal: Annotated[
        str | None, typer.Option("--principal", help="Those of this principal.")
    ] = None,
    operation: Annotated[
        str | None, typer.Option("--operation", help="Those of this operation.")
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", help="Those of exactly this resource, as `list` shows it."),
    ] = None,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete the ACLs that all given options mean."""
    from cli.admin_client import connect

    if principal is None and operation is None and resource is None:
        raise CommandError("say which: --principal, --operation or --resource", ExitCode.USAGE)
    means = make_filter(principal, None)
    if operation is not None:
        operations = parse_operations(operation)
        if len(operations) != 1:
            raise CommandError(f"{operation!r}: name one operation at a time", ExitCode.USAGE)
        (means.operation,) = operations
    if resource is not None:
        kind, means.pattern_type, means.resource_name = parse_resource(resource)
        means.resource_type = kind
    with connect(server, timeout, command_config) as client:
        found = client.delete_acls(means, validate_only=True)
        if not found:
            raise CommandError("there is no such ACL", ExitCode.NOT_FOUND)
        if dry_run:
            print_listing(compute_listing(found), Format.TABLE)
            return
        if not yes:
            ask(COLUMNS, compute_listing(found).rows, f"Delete these {len(found)} ACLs.")
        deleted = client.delete_acls(means, validate_only=False)
    if not quiet:
        print_note(f"deleted ACLs: {len(deleted)}")


@app.command()
def check(
    principal: PrincipalArgument,
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="`read`, `write`, …")],
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help="`group:orders`, `topic:orders`, `cluster`.")
    ],
    host: Annotated[
        str, typer.Option("--host", help="The address that the principal calls from.")
    ] = "127.0.0.1",
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Say whether a principal may do it, and which ACL decides; exit code 1 if not."""
    from cli.admin_client import connect
    from muster.v1 import access_pb2

    kind, name = split_resource(resource)
    request = access_pb2.CheckAccessRequest(
        principal=principal,
        host=host,
        operation=operation.upper().replace("-", "_"),
        resource_type=kind,
        resource_name=name,
    )
    with connect(server, timeout, command_config) as client:
        decision = client.check_access(request)
    by = render(decision.acl) if decision.HasField("acl") else decision.cause
    typer.echo(f"{'allowed' if decision.is_allowed else 'denied'}: {make_printable(by)}")
    if not decision.is_allowed:
        raise typer.Exit(ExitCode.FAILED)


def split_resource(text: str) -> tuple[str, str]:
    """Kafka's resource type, and the name, of ``group:orders`` or ``cluster``."""
    kind, colon, name = text.partition(":")
    if kind.lower() not in RESOURCES:
        raise CommandError(
            f"{text!r} is no resource: write TYPE:NAME, of {', '.join(RESOURCES)}", ExitCode.USAGE
        )
    if kind.lower() == "cluster":
        name = name or CLUSTER
    elif not colon or not name:
        raise CommandError(f"{text!r} has no name: write {kind}:NAME", ExitCode.USAGE)
    return kind.upper().replace("-", "_"), name


def parse_resource(text: str) -> tuple[str, str, str]:
    """Type, pattern type and name: ``group:team-*`` is a prefix, ``group:*`` is every group."""
    kind, name = split_resource(text)
    if name != "*" and name.endswith("*"):
        return kind, "PREFIXED", name[:-1]
    return kind, "LITERAL", name


def parse_operations(text: str) -> list[str]:
    """Kafka's names of the operations in ``read,describe-configs``."""
    return [each.strip().upper().replace("-", "_") for each in text.split(",") if each.strip()]


def make_filter(principal: str | None, resource: str | None) -> access_pb2.AclFilter:
    """The filter for the ACLs of a principal that hold for a resource."""
    from muster.v1 import access_pb2

    means = access_pb2.AclFilter()
    if principal is not None:
        means.principal = principal
    if resource is not None:
        means.resource_type, means.resource_name = split_resource(resource)
        means.pattern_type = "MATCH"
    return means


def render(acl: access_pb2.Acl) -> str:
    """One ACL in a line."""
    star = "*" if acl.pattern_type == "PREFIXED" else ""
    kind = acl.resource_type.lower().replace("_", "-")
    where = "" if acl.host == "*" else f" from {acl.host}"
    return (
        f"{acl.permission} {acl.principal} {acl.operation} {kind}:{acl.resource_name}{star}{where}"
    )


def compute_listing(acls: Sequence[access_pb2.Acl]) -> Listing:
    """A row for each ACL."""
    from google.protobuf.json_format import MessageToDict

    items = [MessageToDict(acl, preserving_proto_field_name=True) for acl in acls]
    return Listing("acl.list", COLUMNS, list(_compute_rows(acls)), {"acls": items}, "acls")


def _compute_rows(acls: Sequence[access_pb2.Acl]) -> Iterator[list[object]]:
    for acl in acls:
        yield [
            acl.permission,
            acl.principal,
            acl.host,
            acl.operation,
            acl.resource_type,
            acl.pattern_type,
            acl.resource_name,
        ]
