"""Which log a command reads: a path, or a live server; it is looked at before Spark starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from pipeline.tables.end_offsets_file import EndOffset

_KAFKA = "kafka://"
"""How the path of a live topic begins: a connector reads it."""

PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="PATH",
        help="A data folder, a folder of __consumer_offsets-N folders, one of these, or one .log.",
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="HOST:PORT", help="Instead of a path: the gRPC address of a server."
    ),
]
ServerConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--server-config",
        metavar="FILE",
        help="TLS and credentials for that server: a Kafka client's .properties.",
    ),
]


def find_log(path: str | None, server: str | None, config: Path | None) -> str:
    """The log as a path or as the address of a server. Raises ``CommandError``."""
    from pipeline.source.errors import OptionError
    from pipeline.source.server.addresses import ServerAddress, parse_address

    if (path is None) == (server is None):
        raise CommandError("give either --path PATH or --server HOST:PORT", ExitCode.USAGE)
    if server is None:
        if config is not None:
            raise CommandError("--server-config is for --server HOST:PORT", ExitCode.USAGE)
        assert path is not None
        return path
    try:
        return parse_address(ServerAddress(server, str(config or "")).write()).write()
    except OptionError as error:
        text = f"--server must be HOST:PORT, not {server}"
        raise CommandError(text, ExitCode.USAGE) from error


def check_log(path: str) -> None:
    """Raise ``CommandError`` unless there is a log that can be read, within a second."""
    # Nothing that imports Spark, which takes longer than all of this.
    from pipeline.source.logs.paths import find_path
    from pipeline.source.server.addresses import is_server, parse_address

    with source_failures():
        if is_server(path):
            from pipeline.source.server.log_calls import LogCalls
            from pipeline.source.server.server_access import find_access

            with closing(LogCalls(find_access(parse_address(path)), patience_s=0.0)) as calls:
                calls.describe()
        elif not path.startswith(_KAFKA):
            _check_folder_of_log(find_path(path))


def _check_folder_of_log(folder: Path) -> None:
    from pipeline.source.errors import NotALog
    from storage.folder.store_folder import find_store
    from storage.segments.errors import NotSegments, SegmentError
    from storage.segments.folder import open_segments

    if find_store(folder) is None:
        try:
            open_segments(folder)
        except NotSegments as error:
            raise NotALog(str(error)) from error
        except SegmentError:
            # It may pass, as a broker's cleaning does: the job waits for that, or says what it is.
            return


def check_folder(name: str, folder: str | Path | None) -> None:
    """Raise ``CommandError`` unless an output folder is one, or can be made, and written to.

    Only Spark can tell of folders of other systems.
    """
    from pipeline.source.logs.paths import is_of_other_system

    if folder is None or is_of_other_system(str(folder)):
        return
    path = Path(str(folder).removeprefix("file:"))
    if path.is_file():
        raise CommandError(f"{name} must be a folder, and {folder} is a file", ExitCode.USAGE)
    check_can_write(name, path)


def check_can_write(name: str, path: Path) -> None:
    """Raise ``CommandError`` unless something can be made in the nearest folder that is there."""
    path = path.absolute()
    nearest = next(each for each in (path, *path.parents) if each.exists())
    try:
        with TemporaryDirectory(prefix=".muster-", dir=nearest):
            return
    except OSError as error:
        raise CommandError(
            f"{name} cannot be written: {nearest}: {error.strerror}; use a folder that can"
        ) from error


@contextmanager
def source_failures() -> Iterator[None]:
    """Errors of reading a log become ``CommandError``."""
    from pipeline.source.errors import (
        MissingConnector,
        NewerStore,
        NotALog,
        OptionError,
        SourceError,
        Unreachable,
    )

    codes: dict[type[Exception], ExitCode] = {
        OptionError: ExitCode.USAGE,
        NotALog: ExitCode.NOT_FOUND,
        NewerStore: ExitCode.PRECONDITION,
        MissingConnector: ExitCode.PRECONDITION,
        Unreachable: ExitCode.UNREACHABLE,
    }
    try:
        yield
    except SourceError as error:
        raise CommandError(str(error), codes.get(type(error), ExitCode.FAILED)) from error


def read_end_offsets_file(file: Path | None) -> list[EndOffset]:
    """The end offsets of a file, none without one. Raises ``CommandError``."""
    from pipeline.tables.end_offsets_file import EndOffsetsError, read_end_offsets

    if file is None:
        return []
    try:
        return read_end_offsets(file, datetime.now(UTC))
    except EndOffsetsError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
