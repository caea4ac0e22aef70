"""Partitions as people write them: ``TOPIC`` or ``TOPIC:0,1``, and ``0=1042`` with an offset."""

from __future__ import annotations

from collections.abc import Iterable

from wording.errors import InputError
from wording.numbers import parse_digits

PARTITION_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1


def parse_partitions(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """Parse ``TOPIC`` or ``TOPIC:P,P``; ``None`` means all partitions. Raises ``InputError``."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        name, colon, numbers = text.partition(":")
        parts = numbers.split(",")
        if not name or name in found or (colon and not all(map(_is_partition, parts))):
            raise InputError(f"{text!r}: write each topic once, as TOPIC or TOPIC:0,1")
        found[name] = [int(part) for part in dict.fromkeys(parts)] if colon else None
    return found


def parse_ends(texts: Iterable[str]) -> dict[int, int]:
    """Parse ``P=OFFSET``, a partition of a topic and where it ends. Raises ``InputError``."""
    found: dict[int, int] = {}
    for text in texts:
        number, _, offset = text.partition("=")
        end = parse_digits(offset, 19)
        if not _is_partition(number) or end is None or end > OFFSET_MAX or int(number) in found:
            raise InputError(f"{text!r}: write each partition once, as PARTITION=OFFSET, like 0=42")
        found[int(number)] = end
    return found


def _is_partition(text: str) -> bool:
    number = parse_digits(text, 10)
    return number is not None and number <= PARTITION_MAX
