"""The commands `muster doctor` and `muster ready`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.options import ConfigOption, OutputOption, parse_duration, resolve_settings
from cli.output import Format, Listing, make_printable, print_listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.doctor.examination import Check
    from cli.doctor.finding import Finding

DOCTOR_EPILOG = (
    "Takes every setting as a flag, as `muster serve` does, and looks at what a server with these "
    "settings would meet. Exits with 0 if nothing fails."
)
_DATA_DIR_FLAGS: Final = ("--data-dir", "--data.dir")
_COLUMNS: Final = ("RESULT", "CHECK", "FINDING", "TO DO")


def doctor(
    context: typer.Context,
    config: ConfigOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Examine this machine, the settings, the data folder and the cluster behind.

    Beside a running server too. Changes nothing.
    """
    from cli.doctor.finding import Level

    found = _examine(context.args, config, says_now=output is Format.TABLE)
    if output is not Format.TABLE:
        print_listing(compute_listing(found), output)
    failed = sum(finding.level is Level.FAIL for _, finding in found)
    if failed:
        raise typer.Exit(ExitCode.FAILED)


def _examine(
    arguments: Sequence[str], config: Path | None, *, says_now: bool
) -> list[tuple[str, Finding]]:
    """All findings; ``says_now`` prints each one as it is there."""
    from cli.doctor.checks.config_checks import describe_mistakes
    from cli.doctor.examination import examine
    from cli.doctor.finding import fail
    from cli.doctor.running_server import find_running_server
    from cli.doctor.subject import Subject
    from cli.settings import SettingsError, resolve
    from cli.settings.setting_sources import parse_flags

    found: list[tuple[str, Finding]] = []

    def note(name: str, finding: Finding) -> None:
        found.append((name, finding))
        if says_now:
            print(render_line(name, finding), flush=True)

    try:
        resolved = resolve(parse_flags(arguments), os.environ, config)
    except SettingsError as error:
        for finding in describe_mistakes(error):
            note("config", finding)
        note("config", fail("nothing else was examined", "run this again when they are mended"))
        return found
    folder = DataFolder(Path(resolved.text("data.dir")))
    try:
        server = find_running_server(folder)
    except PermissionError:
        server = None
    for name, finding in examine(make_checks(), Subject(resolved, folder, server)):
        note(name, finding)
    return found


def make_checks() -> tuple[Check, ...]:
    """All checks, in the order in which they are shown."""
    from cli.doctor.checks.certificate_checks import check_certificates
    from cli.doctor.checks.clock_checks import check_clock
    from cli.doctor.checks.config_checks import check_config
    from cli.doctor.checks.disk_speed import check_disk_speed
    from cli.doctor.checks.folder_checks import check_folder, check_space
    from cli.doctor.checks.limit_checks import check_limits
    from cli.doctor.checks.port_checks import check_ports
    from cli.doctor.checks.server_checks import check_server
    from cli.doctor.checks.upstream_checks import LIMIT_S, check_upstream
    from cli.doctor.checks.version_checks import check_versions
    from cli.doctor.examination import Check

    return (
        Check("versions", check_versions),
        Check("config", check_config),
        Check("server", check_server),
        Check("ports", check_ports),
        Check("folder", check_folder),
        Check("space", check_space),
        Check("disk", check_disk_speed),
        Check("clock", check_clock),
        Check("limits", check_limits),
        Check("tls", check_certificates),
        Check("upstream", check_upstream, LIMIT_S),
    )


def render_line(name: str, finding: Finding) -> str:
    """One line for people: the result, the check, what was found, and what to do."""
    remedy = f"; to do: {finding.remedy}" if finding.remedy else ""
    return make_printable(f"{finding.level:<4}  {name:<8}  {finding.what}{remedy}")


def compute_listing(found: Sequence[tuple[str, Finding]]) -> Listing:
    """The findings for programs."""
    rows = [(str(each.level), name, each.what, each.remedy) for name, each in found]
    items = [
        {"result": level, "check": name, "finding": what, "to_do": remedy}
        for level, name, what, remedy in rows
    ]
    return Listing("doctor", _COLUMNS, rows, {"findings": items}, "findings")


def ready(
    context: typer.Context,
    config: ConfigOption = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", parser=parse_duration, metavar="DURATION", help="How long it may take."
        ),
    ] = "3s",  # type: ignore[assignment]
) -> None:
    """Exit with 0 if the server of the data folder serves all groups: for health checks."""
    from cli.doctor.running_server import ServerSilent, ask, find_running_server

    folder = DataFolder(_find_data_dir(context.args, config))
    try:
        server = find_running_server(folder)
    except PermissionError as error:
        raise CommandError(f"{folder.endpoints} may not be read by this user") from error
    if server is None:
        raise CommandError(f"no server runs on {folder.path}", ExitCode.UNREACHABLE)
    try:
        status, _ = ask(server.addresses["http"], "/readyz", timeout)
    except ServerSilent as error:
        raise CommandError(str(error), ExitCode.UNREACHABLE) from error
    if status != 200:
        raise CommandError("the server is not ready", ExitCode.PRECONDITION)
    print("ready")


def _find_data_dir(arguments: Sequence[str], config: Path | None) -> Path:
    """Without a file it is found without reading the table of settings, which takes longer."""
    match list(arguments):
        case [] if config is None:
            return Path(os.environ.get("MUSTER_DATA_DIR", "data"))
        case [flag, path] if config is None and flag in _DATA_DIR_FLAGS:
            return Path(path)
        case _:
            return Path(resolve_settings(arguments, config).text("data.dir"))
