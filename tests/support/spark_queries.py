"""Spark streaming queries that end by themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_STARTS = 5
_DEADLINE_S = 120


def run_to_the_end(start: Callable[[], StreamingQuery]) -> list[dict[str, Any]]:
    """The progress of each micro-batch of a query; ``start`` restarts it where it stopped.

    Spark gives a Python worker ten seconds to start, and fails the query if a busy machine takes
    longer. That is no fault of the query, so it is restarted.
    """
    from pyspark.errors import StreamingQueryException

    progress: list[dict[str, Any]] = []
    for left in reversed(range(_STARTS)):
        query = start()
        try:
            assert query.awaitTermination(_DEADLINE_S)
        except StreamingQueryException as error:
            if not left or "worker failed to connect back" not in str(error):
                raise
        finally:
            progress += [json.loads(each.json) for each in query.recentProgress]
        if query.exception() is None:
            break
    return progress
