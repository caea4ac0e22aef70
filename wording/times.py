"""Times and spans of time in words, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from wording.errors import InputError
from wording.numbers import parse_digits

TIME_MAX = (1 << 63) - 1
_AGO = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(
    r"P(?:(?P<d>\d{1,6})D)?(?:T(?:(?P<h>\d{1,6})H)?(?:(?P<m>\d{1,6})M)?(?:(?P<s>\d{1,6})S)?)?"
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def render_time(timestamp_ms: int) -> str:
    """Render ``2026-11-21T20:57:13.123Z``, or the number if it is not a valid date."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def render_second(timestamp_ms: int) -> str:
    """Render ``2026-11-21T20:57:13Z``, the nearest second, or the number if there is no such date.

    For times that nobody needs to the millisecond, or that are computed anew with each answer.
    """
    return render_time((timestamp_ms + 500) // 1_000 * 1_000).replace(".000Z", "Z")


def parse_time(what: str, text: str, now_ms: Callable[[], int]) -> int:
    """Parse an ISO 8601 time (UTC by default), ms since 1970, or an age, into wall-clock ms.

    An age such as ``90m`` or ``2d`` counts back from ``now_ms``. ``what`` is named in errors.
    """
    if match := _AGO.fullmatch(text):
        return now_ms() - int(match[1]) * _MS[match[2]]
    if (number := parse_digits(text, 40)) is not None:
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{what} {text!r} is not a time: use 2026-11-21T20:57:13Z, ms since 1970, or an age "
            "such as 90m or 2d"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_moment(what: str, text: str, now_ms: Callable[[], int]) -> int:
    """Parse a time as ``parse_time`` does; it must be one that requests can have."""
    moment_ms = parse_time(what, text, now_ms)
    if not 0 <= moment_ms <= TIME_MAX:
        raise InputError(f"{what} {text!r} is not a time since 1970")
    return moment_ms


def parse_iso_duration_ms(what: str, text: str) -> int:
    """Parse an ISO 8601 duration as Kafka's tool takes it: ``P1DT2H30M5S``."""
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: int(v) for k, v in match.groupdict().items() if v}
    if not parts:
        raise InputError(f"{what} {text!r} is not a duration: use PnDTnHnMnS, such as PT1H30M")
    return 1_000 * sum(_SECONDS[unit] * count for unit, count in parts.items())


def render_span(span_ms: int) -> str:
    """A span of time: ``340 ms``, ``4.5 s``, ``3 m 7 s``, ``2 h 5 m`` or ``3 d 4 h``."""
    if span_ms < 1_000:
        return f"{span_ms} ms"
    if span_ms < 60_000:
        return f"{span_ms / 1_000:.1f} s"
    seconds = span_ms // 1_000
    for unit, name, rest, rest_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if seconds >= unit:
            return f"{seconds // unit} {name} {seconds % unit // rest} {rest_name}"
    raise AssertionError(f"{span_ms} ms is below a minute")
