"""Requests as a client sends them: encoded in a version, and their responses decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request by API key, with its fields by kio's names as plain values.

    An element of an array of entities is a mapping of its fields. Fields that a version lacks are
    dropped; missing ones take their default. ``version_max`` bounds the version.
    """

    key: int
    fields: Mapping[str, Any]
    version_max: int | None = None
