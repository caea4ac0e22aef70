"""A file of partition weights: as in the config, or as `muster config weigh -o csv` prints them."""

from __future__ import annotations

from pathlib import Path

from cli.admin.text_files import read_file
from cli.errors import CommandError, ExitCode, usage_errors
from wording.weights import parse_weight_entries


def read_weights(path: Path) -> list[str]:
    """The entries of the file. Raises ``CommandError`` if it cannot be read or is wrong."""
    try:
        text = read_file(path).decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not text", ExitCode.USAGE) from error
    with usage_errors():
        return parse_weight_entries(str(path), text)
