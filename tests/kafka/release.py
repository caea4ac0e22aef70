"""What differs between the releases of Kafka that Muster can stand in front of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.kafka.broker import LOG_CONFIG, Setting
from tests.kafka.jars import BROKER, KAFKA_2_8, KAFKA_3_9

_TOOLS: Final = "org.apache.kafka.tools"


@dataclass(frozen=True, slots=True)
class Release:
    """A release, and how its groups are set. A name is what parameters of tests show."""

    name: str
    jars: str
    logging: str
    """The option of its JVMs that names the configuration of its log."""
    consumer_groups: str = f"{_TOOLS}.consumer.group.ConsumerGroupCommand"
    topics: str = f"{_TOOLS}.TopicCommand"
    configs: str = "kafka.admin.ConfigCommand"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    has_zookeeper: bool = False

    def __str__(self) -> str:
        return self.name


LOG4J_1: Final = f"-Dlog4j.configuration=file:{Path(__file__).with_name('log4j.properties')}"
_LOG4J_2: Final = f"-Dlog4j2.configurationFile={LOG_CONFIG}"

KAFKA_4_3_CLASSIC: Final = Release(
    "4.3.0-classic",
    BROKER,
    _LOG4J_2,
    settings={"group.coordinator.rebalance.protocols": "classic"},
)
"""Has no KIP-848, as several managed services."""
KAFKA_4_3_0: Final = Release("4.3.0", BROKER, _LOG4J_2)
"""Has KIP-848."""
KAFKA_3_9_1: Final = Release("3.9.1", KAFKA_3_9, LOG4J_1)
KAFKA_2_8_2: Final = Release(
    "2.8.2",
    KAFKA_2_8,
    LOG4J_1,
    consumer_groups="kafka.admin.ConsumerGroupCommand",
    topics="kafka.admin.TopicCommand",
    has_zookeeper=True,
)
"""Has ZooKeeper, and a Metadata API below the version that the consumer protocol needs."""

RELEASES: Final = (KAFKA_4_3_CLASSIC, KAFKA_4_3_0, KAFKA_3_9_1, KAFKA_2_8_2)
