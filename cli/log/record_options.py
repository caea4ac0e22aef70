"""The texts of `--type`, `--since` and `--until`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cli.errors import CommandError, ExitCode, usage_errors
from wording.times import parse_time


def parse_record_types(texts: Sequence[str]) -> frozenset[int]:
    """Parse type names, numbers and ``control`` into ids. Raises ``CommandError``."""
    from storage.codec.record_filters import UnknownRecordType, parse_types

    try:
        return parse_types(texts)
    except UnknownRecordType as error:
        raise CommandError(f"--type {error}", ExitCode.USAGE) from None


def parse_time_option(option: str, text: str, now_ms: Callable[[], int]) -> int:
    """Parse an ISO 8601 time, ms since 1970, or an age, into wall-clock ms."""
    with usage_errors():
        return parse_time(option, text, now_ms)
