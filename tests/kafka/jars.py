"""Kafka's jars, copied once from the Maven repository of this machine into the checkout's cache.

`python -m tests.kafka.jars` does it from the command line and prints the folder.
"""

import sys
from pathlib import Path

from cli.demo.kafka.maven_jars import KAFKA_VERSION, ensure_pom_jars, locked
from cli.demo.kafka.prerequisites import MissingPrerequisite

__all__ = ("KAFKA_VERSION", "locked")

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache"

BROKER, STREAMS, CONNECT = "kafka", "streams", "connect"
"""Sets of jars: a broker with its tools and clients; Kafka Streams alone, to be put before those;
Connect's workers with all that they need."""
KAFKA_3_9, KAFKA_2_8 = "kafka-3.9.1", "kafka-2.8.2"
"""Brokers of other releases, each with its tools and clients; 2.8.2 comes with its ZooKeeper."""
_SETS = {
    BROKER: ("pom.xml", f"{BROKER}-{KAFKA_VERSION}"),
    STREAMS: ("streams.xml", f"{STREAMS}-{KAFKA_VERSION}"),
    CONNECT: ("connect.xml", f"{CONNECT}-{KAFKA_VERSION}"),
    KAFKA_3_9: ("kafka_3_9.xml", KAFKA_3_9),
    KAFKA_2_8: ("kafka_2_8.xml", KAFKA_2_8),
}
"""The pom of each, beside this file, and its folder in the cache."""


def ensure_jars(cache: Path = CACHE, name: str = BROKER) -> Path:
    """Return the folder with a set of Kafka's jars, copying them first where that was not done yet.

    Safe for several processes at once: one copies, the others wait for it. Raises
    MissingPrerequisite where Java or Maven is missing, or no Maven repository can be reached.
    """
    pom_name, folder = _SETS[name]
    return ensure_pom_jars(cache / folder, Path(__file__).with_name(pom_name).read_text())


def class_path(libs: Path) -> str:
    """The class path of every jar in `libs`, in the form `java -cp` takes."""
    return str(libs / "*")


def main() -> int:
    try:
        libs = ensure_jars()
        for name in (STREAMS, KAFKA_3_9, KAFKA_2_8):
            ensure_jars(name=name)
    except MissingPrerequisite as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"{libs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
