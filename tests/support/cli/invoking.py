"""Runs commands as a user does, but in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from cli.errors import CommandError
from cli.main import app


@dataclass
class Result:
    """The output and the exit code of a command."""

    exit_code: int
    out: str
    error: str


def invoke_app(*arguments: str | Path) -> Result:
    """Run `muster` with arguments; ``error`` has the notes and the error."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(result.exception, CommandError):
        error = result.stderr + result.exception.message
        return Result(result.exception.exit_code, result.stdout, error)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)
