"""How lists ask: as one visitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from google.protobuf.message import Message

Ask: TypeAlias = Callable[[str, str, Message], Awaitable[Any]]
"""Service, method and request to the response. Raises ``CallRefused``."""
