"""A text that no message, log line or listing may show."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[hidden]"
"""What is shown in its place, as by Kafka."""


class Secret:
    """A password or a private key; ``reveal`` is the only way to its text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, for whoever checks it or sends it where it belongs."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
