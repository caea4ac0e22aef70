"""What `muster topic match` says of a pattern: what the server would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.errors import CommandError, ExitCode
from coordinator.core.subscriptions.regex_matching import check_regex, compute_matches
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import InvalidRegularExpression
from model.ids import TopicName

if TYPE_CHECKING:
    from muster.v1 import admin_pb2


def check_pattern(pattern: str) -> None:
    """A pattern that is none, empty or too long ends the command with `USAGE`."""
    if not pattern:
        raise CommandError("the pattern is empty: nobody subscribes to it", ExitCode.USAGE)
    try:
        check_regex(pattern, CoordinatorSettings().group_regex_max_bytes)
    except InvalidRegularExpression as error:
        raise CommandError(error.message, ExitCode.USAGE) from error
    except UnicodeEncodeError as error:
        raise CommandError("the pattern is not text in UTF-8", ExitCode.USAGE) from error


def compute_matching(pattern: str, topics: Sequence[admin_pb2.Topic]) -> list[admin_pb2.Topic]:
    """The topics whose whole name the pattern matches, in their order."""
    matches = compute_matches(pattern, (TopicName(topic.topic_name) for topic in topics))
    return [topic for topic in topics if topic.topic_name in matches]
