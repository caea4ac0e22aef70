"""Matching of ``SubscribedTopicRegex``: RE2 syntax, as KIP-848 requires, and full matches.

RE2 matches in time linear in the name for any expression, and bounds the size of programs. Still,
compiling some thousand bytes may take most of a second, and matching one name a millisecond. So the
cost of an expression is estimated before it is compiled, and limits how many names are matched at a
time. Kafka uses RE2/J, which accepts the same syntax.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from coordinator.core.subscriptions.regex_cost import PATTERN_COST_MAX, compute_pattern_cost
from model.errors import InvalidRegularExpression
from model.ids import TopicName

PROGRAM_MAX_BYTES = 768 * 1024
"""The most memory of a compiled expression and its automata."""

SMALL_PROGRAM_MAX_BYTES = 64 * 1024
"""The same for an expression that costs at most ``SMALL_COST``, as nearly all do."""

SMALL_COST = 256

KEPT_PROGRAMS_MAX_BYTES = 32 * 1024 * 1024
"""The most memory of all cached expressions of either size."""

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
"""RE2's error messages, and the corresponding ones of RE2/J, which Kafka's clients know."""


def check_regex(regex: str, max_bytes: int) -> None:
    """Raise ``InvalidRegularExpression``, with Kafka's message, for an invalid one.

    Row C9 of tests/scenarios/README.md.
    """
    if len(regex) > max_bytes or len(regex.encode()) > max_bytes:
        raise InvalidRegularExpression(f"SubscribedTopicRegex is longer than {max_bytes} bytes.")
    try:
        _find_program(regex)
    except re2.error as error:
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_describe(error)}."
        ) from None


def compute_matches(regex: str, names: Iterable[TopicName]) -> frozenset[TopicName]:
    """The names that the expression matches as a whole.

    An invalid expression matches nothing: an imported log may have one that Kafka accepted.
    """
    try:
        fullmatch = _find_program(regex).fullmatch
    except re2.error:
        return frozenset()
    return frozenset(name for name in names if fullmatch(name) is not None)


def _find_program(regex: str) -> Any:
    """The compiled expression. Raises ``re2.error``."""
    cost = compute_pattern_cost(regex)
    if cost > PATTERN_COST_MAX:
        raise re2.error("pattern too large - compile failed")
    return _find_small(regex) if cost <= SMALL_COST else _find_large(regex)


@lru_cache(maxsize=KEPT_PROGRAMS_MAX_BYTES // SMALL_PROGRAM_MAX_BYTES)
def _find_small(regex: str) -> Any:
    return _compile(regex, SMALL_PROGRAM_MAX_BYTES)


@lru_cache(maxsize=KEPT_PROGRAMS_MAX_BYTES // PROGRAM_MAX_BYTES)
def _find_large(regex: str) -> Any:
    return _compile(regex, PROGRAM_MAX_BYTES)


def _compile(regex: str, max_bytes: int) -> Any:
    options = re2.Options()
    options.max_mem = max_bytes
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
