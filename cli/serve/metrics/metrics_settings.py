"""What `/metrics` shows, as set."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Granularity(IntEnum):
    """The finest series that there are: each includes those before it."""

    NONE = 0
    GROUP = 1
    TOPIC = 2
    PARTITION = 3


KAFKA_EXPORTER: Final = "kafka_exporter"
KAFKA_LAG_EXPORTER: Final = "kafka-lag-exporter"
BURROW: Final = "burrow"
COMPATIBLE: Final = (KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, BURROW)
"""Whose names there may be beside ours."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """``cluster_name`` is a label of the names of others."""

    granularity: Granularity = Granularity.TOPIC
    groups_max: int = 10_000
    compatible: frozenset[str] = frozenset()
    cluster_name: str = ""
