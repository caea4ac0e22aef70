"""`muster log backup` and `muster log restore`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.log.import_command import DataDirOption
from cli.log.log_sources import find_store, source_errors
from cli.log.verify import check_store
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    QuietOption,
    TimeoutOption,
)
from cli.output import Format, Listing, print_listing, print_note
from cli.progress import Progress

if TYPE_CHECKING:
    from storage.transfer.backup import Backup

_PARTITIONS_OF_A_NEW_STORE = 1
"""Never used: the store exists and keeps its own number."""

BackupArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the backup.")]


def backup(
    *,
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new folder on the server's machine.")
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="STORE", help="Data folder of a stopped server."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="HOST:PORT",
            envvar="MUSTER_SERVER",
            help=f"gRPC address of a running server ({DEFAULT_SERVER}).",
        ),
    ] = None,
    command_config: CommandConfigOption = None,
    with_credentials: Annotated[
        bool,
        typer.Option("--with-credentials", help="Also back up the SCRAM credentials of users."),
    ] = False,
    output: OutputOption = Format.TABLE,
    quiet: QuietOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Back up a store: everything that was acknowledged before the command, or nothing.

    If a server runs on the store, only this server can make the backup; it keeps serving.
    """
    asked = context.get_parameter_source("server")
    if data_dir is not None and asked is not None and asked.name == "COMMANDLINE":
        raise CommandError("give either --data-dir or --server", ExitCode.USAGE)
    # Resolve symbolic links here, with the caller's rights: the server refuses to follow any.
    folder = folder.parent.resolve() / folder.name
    with Progress(is_quiet=quiet) as progress:
        progress.begin("backup")
        if data_dir is not None:
            found = _back_up_stopped(folder, data_dir, with_credentials=with_credentials)
        else:
            address = server or DEFAULT_SERVER
            found = _back_up_running(
                folder, address, timeout, command_config, with_credentials=with_credentials
            )
    if quiet:
        return
    left_out = found.content["users_left_out"]
    if left_out:
        print_note(f"not backed up: the credentials of {left_out} users (--with-credentials)")
    print_listing(found, output)


def restore(
    folder: BackupArgument,
    data_dir: DataDirOption,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Restore even if the records contradict each other, as long as no byte changed.",
        ),
    ] = False,
    output: OutputOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Restore a backup into a new data folder after checking every file and record of it."""
    from storage.transfer.backup import (
        STORE_NAME,
        check_empty,
        check_files,
        is_restored,
        read_backup,
        restore_backup,
    )

    with backup_errors(), Progress(is_quiet=quiet) as progress:
        found = read_backup(folder)
        if not is_restored(found, data_dir):
            check_empty(data_dir)
            progress.begin("files are checked")
            check_files(folder, found)
            check_store(folder / STORE_NAME, progress, is_forced=force)
            progress.begin("files are copied")
            restore_backup(folder, found, data_dir)
    if quiet:
        return
    if found.users_left_out:
        print_note(
            f"not restored, the backup was made without --with-credentials: {found.users_left_out} "
            "users; create them again with `muster user create`"
        )
    print_listing(_describe("log.restore", data_dir, found), output)


def _back_up_stopped(folder: Path, data_dir: Path, *, with_credentials: bool) -> Listing:
    from storage.folder.replacement import finish_replacement
    from storage.log_store import StoreLocked
    from storage.rocks.rocks_opening import open_store
    from storage.transfer.backup import check_free, make_backup

    with backup_errors():
        check_free(folder)
        finish_replacement(data_dir / "store")
        store = find_store(data_dir)
        if store is None:
            raise CommandError(f"{data_dir} holds no Muster store", ExitCode.NOT_FOUND)
        try:
            opened = open_store(store, partitions=_PARTITIONS_OF_A_NEW_STORE)
        except StoreLocked as error:
            raise CommandError(compute_advice(data_dir, error), ExitCode.PRECONDITION) from error
        try:
            made_at_ms = time.time_ns() // 1_000_000
            made = make_backup(opened, store, folder, made_at_ms, with_credentials=with_credentials)
        finally:
            opened.close()
    return _describe("log.backup", folder, made)


def _back_up_running(
    folder: Path,
    server: str,
    timeout: float,
    command_config: Path | None,
    *,
    with_credentials: bool,
) -> Listing:
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        made = client.create_backup(str(folder), with_credentials)
    content = {
        "folder": made.folder,
        "cluster_id": made.cluster_id,
        "bytes": made.bytes,
        "files": made.files,
        "next_offsets": list(made.next_offsets),
        "users_left_out": made.users_left_out,
    }
    return _compute_listing("log.backup", content)


def compute_advice(data_dir: Path, error: Exception) -> str:
    """The error, or the address of the server that uses the store if it published one."""
    import json

    try:
        address = json.loads(DataFolder(data_dir).endpoints.read_text(encoding="utf-8"))["grpc"]
    except (OSError, ValueError, KeyError, TypeError):
        return str(error)
    return f"{data_dir} is in use by a server: use --server {address}"


def _describe(command: str, folder: Path, made: Backup) -> Listing:
    content = {
        "folder": str(folder),
        "cluster_id": made.cluster_id,
        "bytes": made.bytes,
        "files": len(made.files),
        "next_offsets": list(made.next_offsets),
        "users_left_out": made.users_left_out,
    }
    return _compute_listing(command, content)


def _compute_listing(command: str, content: Mapping[str, object]) -> Listing:
    rows = [(name.replace("_", " "), content[name]) for name in ("folder", "bytes", "files")]
    return Listing(command, ("WHAT", "VALUE"), rows, content, "next_offsets")


@contextmanager
def backup_errors() -> Iterator[None]:
    """``source_errors``, with 3 for a missing backup and 4 for a backup or restore refused."""
    from storage.transfer.backup import BackupRefused, NoBackup

    with source_errors():
        try:
            yield
        except NoBackup as error:
            raise CommandError(str(error), ExitCode.NOT_FOUND) from error
        except BackupRefused as error:
            raise CommandError(str(error), ExitCode.PRECONDITION) from error
