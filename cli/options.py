"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from cli.errors import CommandError, ExitCode
from cli.output import Format

if TYPE_CHECKING:
    from cli.settings import Resolved

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}

SETTINGS_CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
"""For commands that accept every setting as a flag: `parse_flags` reads the remaining arguments."""


def parse_duration(text: str) -> float:
    """Parse ``500ms``, ``30s``, ``2m`` or ``30`` into seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a duration such as 500ms, 30s or 2m")
    return float(match[1]) * _SECONDS[match[2]]


OutputOption: TypeAlias = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]
ServerOption: TypeAlias = Annotated[
    str,
    typer.Option("--server", envvar="MUSTER_SERVER", help="The server's gRPC address."),
]
TimeoutOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--timeout",
        envvar="MUSTER_TIMEOUT",
        parser=parse_duration,
        metavar="DURATION",
        help="How long to wait for the server.",
    ),
]
CommandConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        envvar="MUSTER_COMMAND_CONFIG",
        metavar="FILE",
        help="TLS and credentials: a Kafka client's .properties.",
    ),
]
QuietOption: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only data and errors.")
]
YesOption: TypeAlias = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")
]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would change.")
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="MUSTER_CONFIG",
        metavar="FILE",
        help="Settings file: .properties (Kafka's server.properties works) or .toml.",
    ),
]

DEFAULT_SERVER = "127.0.0.1:50051"
DEFAULT_TIMEOUT: Final[Any] = "30s"
"""A text that is parsed like one that is given: not of the type of the option."""


def resolve_settings(arguments: Sequence[str], config: Path | None) -> Resolved:
    """Resolve the settings of a command line, this process's environment and a file."""
    import os

    from cli.settings import SettingsError, resolve
    from cli.settings.setting_sources import parse_flags

    try:
        return resolve(parse_flags(arguments), os.environ, config)
    except SettingsError as error:
        raise CommandError("\n".join(error.lines), ExitCode.USAGE) from error
