"""Responses of Muster's own topic catalogue."""

from __future__ import annotations

from model.topics import Topic
from model.value import value


@value
class TopicResponse:
    """The topic after a create or grow, or before a delete."""

    topic: Topic
