"""Kafka's own command line tools, run against any server of the Kafka wire."""

import subprocess
from collections.abc import Sequence

from tests.kafka.broker import LOG_CONFIG
from tests.kafka.jars import class_path, ensure_jars
from tests.kafka.prerequisites import check_java

# The first compiler alone: a tool ends before the second one pays.
SHORT_RUN_JVM_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"

_TIMEOUT_S = 60.0


def run_consumer_groups(
    bootstrap: str, *arguments: str, timeout_s: float = _TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """`kafka-consumer-groups`, as in `run_consumer_groups(b, "--describe", "--group", "g")`."""
    return run_tool(CONSUMER_GROUPS, ["--bootstrap-server", bootstrap, *arguments], timeout_s)


def run_topics(
    bootstrap: str, *arguments: str, timeout_s: float = _TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """`kafka-topics`, as in `run_topics(b, "--list")`."""
    return run_tool(TOPICS, ["--bootstrap-server", bootstrap, *arguments], timeout_s)


def run_dump_log(
    *arguments: str, timeout_s: float = _TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """`kafka-dump-log`, as in `run_dump_log("--offsets-decoder", "--files", path)`."""
    return run_tool(DUMP_LOG, arguments, timeout_s)


def run_tool(
    main_class: str, arguments: Sequence[str], timeout_s: float = _TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run any main class of Kafka's jars; its output is text, its exit code is not checked.

    Raises subprocess.TimeoutExpired, with the tool killed, when it takes longer than `timeout_s`.
    """
    return subprocess.run(
        tool_command(main_class, arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def tool_command(main_class: str, arguments: Sequence[str]) -> list[str]:
    """The command line that runs a main class of Kafka's jars in a small JVM."""
    return [
        check_java(),
        *SHORT_RUN_JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        "-cp",
        class_path(ensure_jars()),
        main_class,
        *arguments,
    ]
