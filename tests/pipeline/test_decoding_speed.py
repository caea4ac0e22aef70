"""A whole segment to ``records`` beside DumpLogSegments; the page of the bench has the figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.pipeline.decoding import measure_decoding

LEAST_CPU_RATIO = 3.0
"""Processor time, for a rate says little on a busy machine; rows for Spark's writer take 1 of 1.5.

`make pipeline-bench` asks for 5 times the rate, on a machine that does nothing else.
"""

pytestmark = [pytest.mark.alone, pytest.mark.kafka, pytest.mark.timeout(400)]


def test_a_segment_is_read_faster_than_kafka_reads_it(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    result = measure_decoding(tmp_path, [1], rounds=1, warm_ups=2)
    record_property(
        "note",
        f"records/s of a segment: Spark {result.rate():,.0f}, "
        f"DumpLogSegments {result.kafka_rate:,.0f}, {result.ratio:.1f} times; of processor time "
        f"1 of {result.cpu_ratio:.1f}",
    )
    assert result.cpu_ratio >= LEAST_CPU_RATIO
