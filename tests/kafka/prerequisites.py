"""What the Kafka peer needs on the machine: Java, a compiler for client programs, Maven."""

from cli.demo.kafka.prerequisites import (
    JAVA_MAJOR_REQUIRED,
    MissingPrerequisite,
    check_java,
    check_javac,
    check_maven,
)

__all__ = (
    "JAVA_MAJOR_REQUIRED",
    "MissingPrerequisite",
    "check_java",
    "check_javac",
    "check_maven",
)
