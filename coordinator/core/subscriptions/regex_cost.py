"""An estimate of a regular expression's cost before compilation: about the size of its program.

This is not RE2's parser, which is the expensive part. A misread expression only makes the estimate
wrong, and the size of the compiled program is bounded as well.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

PATTERN_COST_MAX: Final = 10_000
"""A greater cost is refused as too large. 4,096 bytes of names cost less, and so do 400
alternatives ``.*name.*``."""

_ANY_COST: Final = 10
_CLASS_COST: Final = 10
_UNICODE_CLASS_COST: Final = 400

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|(?P<unicode>\\[pP](?:\{[^}]*\}|.)?)"
    r"|(?P<escape>\\.?)"
    r"|(?P<set>\[\^?\]?(?:\\.|\[:\^?\w*:\]|[^\]\\])*\]?)"
    r"|(?P<open>\()|(?P<close>\))"
    r"|\{(?P<least>\d+)(?:,(?P<most>\d*))?\}"
    r"|(?P<any>\.)"
    r"|(?P<other>.)",
    re.DOTALL,
)


@lru_cache(maxsize=512)
def compute_pattern_cost(regex: str) -> int:
    """The estimated cost, in linear time. A repetition costs its operand times its maximum."""
    around: list[int] = []
    total = last = 0
    for token in _TOKEN.finditer(regex):
        kind = token.lastgroup
        if kind in ("least", "most"):
            total += last * (_compute_times(token) - 1)
            last *= _compute_times(token)
        elif kind == "open":
            around.append(total)
            total = last = 0
        elif kind == "close":
            last = total + 1
            total = (around.pop() if around else 0) + last
        elif token.group() not in "*+?|":
            last = _compute_atom_cost(kind, token)
            total += last
        if total > PATTERN_COST_MAX:
            return total
    return total + sum(around)


def _compute_times(token: re.Match[str]) -> int:
    least, most = token["least"][:6], (token["most"] or "")[:6]
    return max(int(least), int(most or 0), 1)


def _compute_atom_cost(kind: str | None, token: re.Match[str]) -> int:
    text = token.group()
    match kind:
        case "unicode":
            return _UNICODE_CLASS_COST
        case "set":
            classes = text.count("\\p") + text.count("\\P")
            return _CLASS_COST + len(text) + classes * _UNICODE_CLASS_COST
        case "any":
            return _ANY_COST
        case _:
            return max(len(token["quoted"] or "") if kind == "quoted" else len(text.encode()), 1)
