"""What is shown in place of a secret, and which names have one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from model.secret import HIDDEN

_WORDS: Final = ("password", "secret", "jaas", "credential", "keystore.key")
_LEAST: Final = 4
"""Characters of a secret that can be told from other text; a shorter one is never put into it."""


def looks_secret(name: str) -> bool:
    """Whether the name of a setting or property says that its value is a secret."""
    lower = name.lower()
    return any(word in lower for word in _WORDS)


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text, with ``[hidden]`` for each of the secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST:
            text = text.replace(secret, HIDDEN)
    return text
