"""Reads Java's ``.properties`` format, the format of Kafka's ``server.properties``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A key, its value, and the number of the line on which it begins."""

    key: str
    value: str
    line: int


class PropertiesError(ValueError):
    """The text is not valid ``.properties``; the message names the line."""


def parse_properties(text: str) -> list[Property]:
    """Parse a text into its properties, in order; a key may occur twice.

    Follows ``java.util.Properties.load``: comments with ``#`` and ``!``, continuation lines,
    separators ``=``, ``:`` and blanks, escapes with a backslash. Raises ``PropertiesError`` for a
    ``\\u`` without four hexadecimal digits, the only input that Java rejects.
    """
    return [_parse_line(line, number) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continuation lines; drop comments and leading blanks."""
    pending, start = "", 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        start = start if pending else number
        pending += line
        if _ends_open(pending):
            pending = pending[:-1]
            # In a continuation, `#` and `!` are text, even if the first part is empty.
            pending = pending or " "
            continue
        yield start, pending.lstrip(_BLANKS)
        pending = ""
    if pending.strip(_BLANKS):
        yield start, pending.lstrip(_BLANKS)


def _ends_open(line: str) -> bool:
    """Whether the line ends with an odd number of backslashes, so that the next continues it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _parse_line(line: str, number: int) -> Property:
    end = _find_key_end(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return Property(_unescape(line[:end], number), _unescape(rest, number), number)


def _find_key_end(line: str) -> int:
    index = 0
    while index < len(line) and line[index] not in "=:" + _BLANKS:
        index += 2 if line[index] == "\\" else 1
    return min(index, len(line))


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character != "\\":
            parts.append(character)
            continue
        escaped = text[index : index + 1]
        index += 1
        if escaped == "u":
            parts.append(_unescape_code(text[index : index + 4], line))
            index += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    return "".join(parts)


def _unescape_code(digits: str, line: int) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        # Not the text: it may be a part of a password.
        raise PropertiesError(f"line {line}: \\u is not followed by four hex digits")
    return chr(int(digits, 16))
