"""Files that commands are given: read whole, but not without end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cli.errors import CommandError, ExitCode

FILE_BYTES_MAX: Final = 32 << 20
"""100,000 lines with the longest names."""


def read_file(path: Path) -> bytes:
    """The file. Raises ``CommandError`` if it cannot be read, or is larger than any can be."""
    try:
        with path.open("rb") as opened:
            found = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", ExitCode.USAGE) from error
    if len(found) > FILE_BYTES_MAX:
        size = f"{FILE_BYTES_MAX >> 20} MiB"
        raise CommandError(f"{path} is larger than {size}: is it the right file?", ExitCode.USAGE)
    return found
