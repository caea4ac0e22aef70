"""W3C's ``traceparent``: which span of a client a request belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from coordinator.runtime.trips.trip import Parent, SpanId

KEY: Final = "traceparent"
_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?\Z")
_LENGTH_MAX: Final = 256
_INVALID_VERSION: Final = "ff"
_SAMPLED: Final = 1


def parse_traceparent(text: str | bytes) -> Parent | None:
    """The parent, or ``None`` if the text is not valid: a request then has a trace of its own.

    A later version may be longer, as Trace Context Level 1, section 3.2.4, has it.
    """
    if not isinstance(text, str) or len(text) > _LENGTH_MAX:
        return None
    found = _FORM.match(text)
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == _INVALID_VERSION or (version == "00" and rest):
        return None
    ids = SpanId(int(trace, 16), int(span, 16))
    if not ids.trace or not ids.span:
        return None
    return Parent(ids, bool(int(flags, 16) & _SAMPLED))


def find_parent(metadata: Iterable[tuple[str, str | bytes]] | None) -> Parent | None:
    """The parent that the metadata of a call names."""
    for key, value in metadata or ():
        if key == KEY:
            return parse_traceparent(value)
    return None
