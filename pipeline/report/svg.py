"""SVG and HTML elements as text; escapes whatever a log may contain."""

from __future__ import annotations

import html
import re

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that are invalid in a document."""

_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters that change the writing direction around them."""


def escape(text: object) -> str:
    """Escaped text; characters that cannot be shown become a replacement character."""
    shown = _TURNING.sub("\ufffd", _FORBIDDEN.sub("\ufffd", str(text)))
    return html.escape(shown, quote=True)


def element(tag: str, /, *content: str, **attributes: object) -> str:
    """An element around content that is already escaped.

    Attributes are escaped here; in their names ``_`` becomes ``-``, and a trailing ``_`` is
    dropped. Attributes with the value ``None`` are left out.
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_show(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{shown}>{''.join(content)}</{tag}>"


def text(x: float, y: float, words: object, **attributes: object) -> str:
    """A line of text at a position of an image."""
    return element("text", escape(words), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rectangle(
    x: float, y: float, width: float, height: float, class_: str, title: str | None = None
) -> str:
    """A rectangle; ``title`` is its tooltip."""
    words = () if title is None else (element("title", escape(title)),)
    return element("rect", *words, x=x, y=y, width=width, height=height, class_=class_)


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)
