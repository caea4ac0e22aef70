"""A query whose source was slow to start is restarted; one that fails is not."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from pipeline.source.errors import LogReplaced
from pipeline.tables.tables_stream import run_query

SLOW = "[STREAM_FAILED] terminated with exception: Python worker failed to connect back."


def fail_with(*messages: str) -> list[str]:
    """Run a query that fails with these errors in turn; return the errors left."""
    left = list(messages)

    def run() -> None:
        if left:
            raise StreamingQueryException(left.pop(0))

    run_query(run)
    return left


def test_a_source_that_is_slow_to_start_is_waited_for() -> None:
    assert fail_with(SLOW, SLOW) == []


def test_a_source_that_never_starts_is_an_error() -> None:
    with pytest.raises(StreamingQueryException, match="connect back"):
        fail_with(*[SLOW] * 100)


def test_a_file_that_is_replaced_each_time_is_an_error_in_the_sources_own_words() -> None:
    replaced = f"{LogReplaced.__module__}.LogReplaced: 0.log: the file no longer exists"
    assert fail_with(replaced, replaced) == []
    with pytest.raises(LogReplaced, match=r"^0\.log: the file no longer exists$"):
        fail_with(*[replaced] * 100)


def test_another_failure_is_one_at_once() -> None:
    with pytest.raises(StreamingQueryException, match="offsets are gone"):
        fail_with("offsets are gone", SLOW)
