"""Patterns of ``subscribed_topic_regex``: RE2, by KIP-848's contract, and matched in full.

RE2 takes time linear in the name, whatever the pattern, and a program is bounded in size, so no
pattern can hold anybody up. Kafka uses RE2/J, which is the same language.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from model.errors import InvalidRegularExpression
from model.ids import TopicName

PROGRAM_MAX_BYTES = 2 * 1024 * 1024
"""Of a compiled pattern and the automata that are made of it."""

KEPT_PATTERNS = 1_024

KEPT_PROGRAMS = 128
"""Compiled patterns that are kept: 256 MiB at most."""

_DESCRIPTIONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "it is too large",
}
"""RE2's words, and those of RE2/J that clients of Kafka know."""


def check_regex(regex: str, max_bytes: int) -> None:
    """Row C9. Raises ``InvalidRegularExpression`` with Kafka's words."""
    if len(regex) > max_bytes or len(regex.encode()) > max_bytes:
        raise InvalidRegularExpression(f"SubscribedTopicRegex is longer than {max_bytes} bytes.")
    try:
        _compile(regex)
    except re2.error as error:
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_describe(error)}."
        ) from None


def compute_matches(regex: str, names: Iterable[TopicName]) -> frozenset[TopicName]:
    """The names that the pattern matches from end to end.

    A pattern that is none matches nothing: a log may bring one that somebody else had accepted.
    """
    try:
        fullmatch = _compile(regex).fullmatch
    except re2.error:
        return frozenset()
    return frozenset(name for name in names if fullmatch(name) is not None)


@lru_cache(maxsize=KEPT_PROGRAMS)
def _compile(regex: str) -> Any:
    options = re2.Options()
    options.max_mem = PROGRAM_MAX_BYTES
    options.never_capture = True
    options.log_errors = False
    return re2.compile(regex, options)


def _describe(error: Exception) -> str:
    cause = error.args[0] if error.args else ""
    text = cause.decode(errors="replace") if isinstance(cause, bytes) else str(cause)
    for words, description in _DESCRIPTIONS.items():
        if text.startswith(words):
            return description
    return text.partition(":")[0]
