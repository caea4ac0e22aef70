"""What must hold of every answer, and what a fuzz run says where it does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.codec.kio_schema import compute_fields

VALID_TOPIC = "of-the-valid-client"
"""That no sequence knows, and so does not delete."""
DEADLINE_S = 20.0
"""For an answer: far above what any takes on a busy machine. A hang is for ever."""


class Broken(AssertionError):
    """A law that does not hold."""


@dataclass
class Tally:
    """What a run has come to."""

    sequences: int = 0
    requests: int = 0
    answers: int = 0
    closed: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.sequences} sequences, {self.requests} requests, {self.answers} answers, "
            f"{self.closed} connections closed"
        )


def find_unknown_error(entity: Any) -> bool:
    """Whether an answer, or something in it, has UNKNOWN_SERVER_ERROR."""
    for row in compute_fields(cast(Any, type(entity))):
        value = getattr(entity, row.name)
        if row.kafka_type == "error_code" and -1 in (value if row.is_array else (value,)):
            return True
        if row.entity is not None and value is not None:
            inner = value if row.is_array else (value,)
            if any(find_unknown_error(item) for item in inner):
                return True
    return False
