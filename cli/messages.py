"""Renders messages of ``muster.v1`` for output."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message


def as_dict(message: Message) -> dict[str, Any]:
    """A message as a dict by field name; topic ids are rendered as Kafka's tools render them."""
    from google.protobuf.json_format import MessageToDict

    content: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    _respell_topic_ids(content)
    return content


def _respell_topic_ids(content: Any) -> None:
    """Re-encode topic ids: protobuf's JSON uses the base64 alphabet with ``+`` and ``/``."""
    if isinstance(content, list):
        for each in content:
            _respell_topic_ids(each)
    elif isinstance(content, dict):
        for name, value in content.items():
            if name == "topic_id" and isinstance(value, str):
                content[name] = value.translate(_URLSAFE).rstrip("=")
            else:
                _respell_topic_ids(value)


_URLSAFE = str.maketrans("+/", "-_")


def render_topic_id(topic_id: bytes) -> str:
    """Render an id as Kafka does: URL-safe base64 without padding; empty for no id."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
