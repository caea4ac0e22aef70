"""What is shown before an action is confirmed, and after it was done."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from console.views.tables import Table

_TOKEN_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class Preview:
    """Before the confirmation.

    ``fields`` are what the form brought and brings again. ``token`` names the group as it was
    shown: it is refused when the group is another.
    """

    title: str
    effects: Sequence[str]
    confirm: str
    token: str
    command: str
    tables: Sequence[Table] = ()
    warnings: Sequence[str] = ()
    fields: Sequence[tuple[str, str]] = ()
    is_dangerous: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """After it was done."""

    title: str
    lines: Sequence[str]
    command: str
    tables: Sequence[Table] = ()
    failures: Sequence[str] = ()


def compute_token(messages: Iterable[Message]) -> str:
    """Names what these answers say."""
    digest = hashlib.sha256()
    for message in messages:
        data = message.SerializeToString(deterministic=True)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:_TOKEN_CHARS]
