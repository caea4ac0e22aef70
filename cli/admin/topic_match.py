"""`muster topic match`: the topics that a regular expression of a subscription matches."""

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
    """Check a regular expression; one that is empty, invalid or too long raises ``USAGE``."""
    if not pattern:
        raise CommandError("the regular expression is empty", ExitCode.USAGE)
    try:
        check_regex(pattern, CoordinatorSettings().group_regex_max_bytes)
    except InvalidRegularExpression as error:
        raise CommandError(error.message, ExitCode.USAGE) from error
    except UnicodeEncodeError as error:
        raise CommandError("the regular expression is not valid UTF-8", ExitCode.USAGE) from error


def compute_matching(pattern: str, topics: Sequence[admin_pb2.Topic]) -> list[admin_pb2.Topic]:
    """The topics whose whole name matches, in their order."""
    matches = compute_matches(pattern, (TopicName(topic.topic_name) for topic in topics))
    return [topic for topic in topics if topic.topic_name in matches]
