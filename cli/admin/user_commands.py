"""`muster user`: users with SCRAM credentials, which Kafka's `kafka-configs.sh` manages too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from cli.admin.passwords import compute_credentials, prepare, read_password
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
from model.access.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism

if TYPE_CHECKING:
    from muster.v1 import user_pb2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Manage users that log in with a password: create, list, passwd and delete.",
)

COLUMNS: Final = ("USER", "MECHANISM", "ITERATIONS")
BOTH: Final = "both"

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The user; ACLs name it User:NAME.")
]
PasswordFileOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="A file with the password; `-` reads it from standard input. By default it is asked "
        "for on the terminal.",
    ),
]
IterationsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=ITERATIONS_MIN,
        max=ITERATIONS_MAX,
        help="Rounds of the salting, which each login computes.",
    ),
]


@app.command()
def create(
    name: NameArgument,
    *,
    mechanism: Annotated[
        str,
        typer.Option("--mechanism", help="SCRAM-SHA-256, SCRAM-SHA-512 or both."),
    ] = BOTH,
    iterations: IterationsOption = ITERATIONS_MIN,
    password_file: PasswordFileOption = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Create a user. The password is not sent: the server gets salted hashes of it."""
    from cli.admin_client import connect

    name = prepare(name, "name")
    mechanisms = parse_mechanisms(mechanism)
    credentials = compute_credentials(read_password(password_file), mechanisms, iterations)
    with connect(server, timeout, command_config) as client:
        client.create_user(name, credentials, dry_run)
    if not quiet:
        print_note(f"{'can be created' if dry_run else 'created'}: {_render(name, mechanisms)}")


@app.command()
def passwd(
    name: NameArgument,
    *,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            help="SCRAM-SHA-256, SCRAM-SHA-512 or both; those that the user has by default.",
        ),
    ] = None,
    iterations: IterationsOption = ITERATIONS_MIN,
    password_file: PasswordFileOption = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Change the password of a user: no former one is valid afterwards, for any mechanism.

    Who is logged in stays so until the connection ends or has to authenticate again.
    """
    from cli.admin_client import connect

    name = prepare(name, "name")
    with connect(server, timeout, command_config) as client:
        found = client.list_users(name)
        if not found:
            raise CommandError(f"there is no user {name}", ExitCode.NOT_FOUND)
        mechanisms = (
            [ScramMechanism(each.mechanism) for each in found[0].credentials]
            if mechanism is None
            else parse_mechanisms(mechanism)
        )
        credentials = compute_credentials(read_password(password_file), mechanisms, iterations)
        client.alter_user(name, credentials, dry_run)
    if not quiet:
        print_note(f"{'can be changed' if dry_run else 'changed'}: {_render(name, mechanisms)}")


@app.command("list")
def list_users(
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List users, and the mechanisms that they can log in with."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        found = client.list_users()
    print_listing(compute_listing(found), output)


@app.command()
def delete(
    name: NameArgument,
    *,
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", help="Only the credential for this mechanism."),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete a user, or one of its credentials. Its ACLs stay.

    Who is logged in stays so until the connection ends or has to authenticate again.
    """
    from cli.admin_client import connect

    name = prepare(name, "name")
    wanted = "" if mechanism in (None, BOTH) else parse_mechanisms(mechanism or "")[0].value
    with connect(server, timeout, command_config) as client:
        client.delete_user(name, wanted, validate_only=True)
        found = compute_listing(client.list_users(name))
        rows = [row for row in found.rows if wanted in ("", row[1])]
        if dry_run:
            print_listing(
                Listing("user.delete", COLUMNS, rows, found.content, "users"), Format.TABLE
            )
            return
        if not yes:
            ask(COLUMNS, rows, f"Delete these credentials of {name}.")
        client.delete_user(name, wanted, validate_only=False)
    if not quiet:
        print_note(f"deleted: {name}" + (f" for {wanted}" if wanted else ""))


def parse_mechanisms(text: str) -> list[ScramMechanism]:
    """The mechanisms that an option names; raises ``CommandError``."""
    if text.lower() == BOTH:
        return list(ScramMechanism)
    try:
        return [ScramMechanism(text.upper())]
    except ValueError:
        names = ", ".join(each.value for each in ScramMechanism)
        raise CommandError(f"{text!r} is none of {names}, {BOTH}", ExitCode.USAGE) from None


def compute_listing(users: Sequence[user_pb2.User]) -> Listing:
    """A row for each credential."""
    from google.protobuf.json_format import MessageToDict

    items = [MessageToDict(user, preserving_proto_field_name=True) for user in users]
    return Listing("user.list", COLUMNS, list(_compute_rows(users)), {"users": items}, "users")


def _compute_rows(users: Sequence[user_pb2.User]) -> Iterator[list[object]]:
    for user in users:
        for credential in user.credentials:
            yield [user.name, credential.mechanism, credential.iterations]


def _render(name: str, mechanisms: Sequence[ScramMechanism]) -> str:
    return f"{name} ({', '.join(each.value for each in mechanisms)})"
