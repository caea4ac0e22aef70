"""Checks arguments where the application sets them: a message could only fail later, if at all.

``check_*`` raises ``TypeError`` or ``ValueError`` with the name of the argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

INT32_MAX: Final = 2**31 - 1


def check_ms(name: str, value: object) -> int:
    """An integer number of milliseconds, at least 1, that fits into 32 bits."""
    return check_int(name, value, 1)


def check_int(name: str, value: object, minimum: int) -> int:
    """An integer, at least ``minimum``, that fits into 32 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not minimum <= value <= INT32_MAX:
        raise ValueError(f"{name} must be between {minimum} and {INT32_MAX}, not {value}")
    return value


def check_text(name: str, value: object) -> str:
    """A string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} cannot be encoded as UTF-8: {error}") from None
    return value


def check_secret(name: str, value: object) -> str:
    """A string that UTF-8 can encode, of which no error shows anything."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} cannot be encoded as UTF-8") from None
    return value


def check_texts(name: str, values: Iterable[Any]) -> tuple[str, ...]:
    """A collection of strings, which must not be a string itself."""
    if isinstance(values, str):
        raise TypeError(f"{name} must be a collection of names, not a single name")
    return tuple(check_text(f"each of {name}", value) for value in values)
