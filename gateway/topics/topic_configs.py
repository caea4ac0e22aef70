"""Topic configs: the names that are known, and the effective values.

The cleanup policy is the only config that a topic can have of its own. CreateTopics accepts every
known config, because stock clients set some, and responses show the effective values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.topics.log.policies import DELETE
from gateway.topics.settings import TopicSettings

CLEANUP_POLICY: Final = "cleanup.policy"
_OFF: Final = "-1"
_TOPIC_CONFIG: Final = 1
_DEFAULT_CONFIG: Final = 5

KNOWN_TOPIC_CONFIGS: Final = frozenset(
    {
        CLEANUP_POLICY,
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)


def compute_topic_config_source(name: str, value: str) -> int:
    """Kafka's ``ConfigSource`` code of a value: the topic's own config, or a default."""
    return _TOPIC_CONFIG if name == CLEANUP_POLICY and value != DELETE else _DEFAULT_CONFIG


def compute_topic_configs(settings: TopicSettings, policy: str = DELETE) -> Mapping[str, str]:
    """The effective configs of a stored topic with this cleanup policy."""
    return {
        CLEANUP_POLICY: policy,
        "compression.type": "producer",
        "max.message.bytes": str(settings.message_max_bytes),
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.type": "CreateTime",
        "min.insync.replicas": "1",
        "retention.bytes": str(settings.gateway_topics_retention_bytes),
        "retention.ms": _OFF,
        "segment.bytes": str(settings.gateway_topics_segment_bytes),
    }
