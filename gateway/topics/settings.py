"""Resolved settings of the topic store."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of the topic store; a setting is its field's name with dots. Sizes in bytes.

    ``gateway_topics_*`` are Muster's own; the others are Kafka's. Like Kafka's ``retention.bytes``,
    ``gateway_topics_retention_bytes`` bounds a partition by deleting whole segments, but never the
    newest. ``gateway_topics_total_bytes`` bounds all partitions together by deleting the least
    recently written segments, including a partition's newest.
    """

    gateway_topics_retention_bytes: int = 64 * MIB
    gateway_topics_segment_bytes: int = 8 * MIB
    gateway_topics_total_bytes: int = 2_048 * MIB
    gateway_topics_open_files: int = 256
    gateway_topics_producers_per_partition: int = 1_000
    gateway_topics_sync_interval_ms: int = 1_000
    message_max_bytes: int = 1_048_588
    fetch_max_bytes: int = 55 * MIB
    log_min_free_bytes: int = 256 * MIB

    def __post_init__(self) -> None:
        if self.message_max_bytes > self.gateway_topics_segment_bytes:
            raise ValueError(
                f"message.max.bytes ({self.message_max_bytes}) is more than a segment holds: "
                f"raise gateway.topics.segment.bytes ({self.gateway_topics_segment_bytes})"
            )
        for name in (
            "gateway_topics_total_bytes",
            "gateway_topics_open_files",
            "gateway_topics_producers_per_partition",
            "gateway_topics_sync_interval_ms",
            "message_max_bytes",
            "fetch_max_bytes",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name.replace('_', '.')} must be 1 or more")
