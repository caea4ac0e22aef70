"""What members of tests subscribe to: names, and a pattern, which begins with ``/``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from model.ids import TopicName
from model.topics import TopicImage


def names_in(said: Iterable[str]) -> tuple[TopicName, ...]:
    """The names."""
    return tuple(TopicName(text) for text in said if not text.startswith("/"))


def regex_in(said: Iterable[str]) -> str:
    """The pattern, empty for none."""
    return next((text[1:] for text in said if text.startswith("/")), "")


def matches(regex: str, image: TopicImage) -> frozenset[TopicName]:
    """The topics that a pattern matches, by another engine than the server's."""
    return frozenset(name for name in image.by_name if regex and re.fullmatch(regex, name))


def topics_of(said: Iterable[str], image: TopicImage) -> frozenset[TopicName]:
    """The topics of names and pattern, as if that were always resolved."""
    listed = tuple(said)
    return matches(regex_in(listed), image).union(names_in(listed))
