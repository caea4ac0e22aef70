"""Characters that nobody sees, or that change how others are shown, made visible."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Controls, directions of text, and what has no width; tabs and the ends of lines stay."""


def show_all(value: object) -> object:
    """The value of an expression in a template, as it is shown. HTML that is ours stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNSEEN.sub(_show, value)
    return value


def keep_exact(value: object) -> Markup:
    """The filter for what a form has to bring back as it was."""
    return escape(value)


def _show(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
