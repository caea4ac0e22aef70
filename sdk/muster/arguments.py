"""What an application sets, looked at where it is set: a server could only be told later, or never.

``check_*`` raises ``TypeError`` or ``ValueError``, which name the argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

INT32_MAX: Final = 2**31 - 1


def check_ms(name: str, value: object) -> int:
    """A time in whole milliseconds, from 1 to what a message can say."""
    return check_int(name, value, 1)


def check_int(name: str, value: object, minimum: int) -> int:
    """A whole number that a message can say, of 32 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not minimum <= value <= INT32_MAX:
        raise ValueError(f"{name} is from {minimum} to {INT32_MAX}, not {value}")
    return value


def check_text(name: str, value: object) -> str:
    """A string that UTF-8 can say."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is no UTF-8: {error}") from None
    return value


def check_texts(name: str, values: Iterable[Any]) -> tuple[str, ...]:
    """Strings, in a collection that is none itself."""
    if isinstance(values, str):
        raise TypeError(f"{name} is a collection of names, not one name")
    return tuple(check_text(f"each of {name}", value) for value in values)
