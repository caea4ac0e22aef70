"""The same commands and calls to a real Kafka and to Muster, and what they print held together.

What differs from server to server by its nature is written alike before: addresses and ids of
members. Lines may come in any order, and columns have any width.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pprint import pformat
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.confluent_client import WITHIN_S
from tests.kafka.java import JavaProgram
from tests.support.waiting import wait_until

_TOPIC_ID = re.compile(r"TopicId: \S+")
_MECHANISM = r"((?:ScramCredentialInfo\{{mechanism=)?SCRAM.SHA.{}\D+\d+\}}?)"
_MECHANISMS = re.compile(f"{_MECHANISM.format(512)}, {_MECHANISM.format(256)}")
"""Those of a user, in the order that is turned round: Kafka has them in any."""


class Side:
    """One of the two servers: HOST:PORT, and names for what is found in what is printed of it.

    ``config`` is a file of settings with which the tools come; clients of Python come without.
    """

    def __init__(self, address: str, config: str = "") -> None:
        self.address = address
        self.config = config
        self.names = {address: "SERVER"}

    def rename(self, printed: str) -> str:
        for found, name in self.names.items():
            printed = printed.replace(found, name)
        printed = _MECHANISMS.sub(r"\2, \1", printed)
        return _TOPIC_ID.sub("TopicId: ID", printed)

    def create_topics(self, topics: Mapping[str, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        made = admin.create_topics(
            [NewTopic(name, partitions, 1) for name, partitions in topics.items()]
        )
        for topic in made.values():
            topic.result(WITHIN_S)

    def produce(self, topic: str, partitions: int, timestamps_ms: Sequence[int]) -> None:
        """A record of each time to each partition of a topic."""
        producer = Producer({"bootstrap.servers": self.address})
        for partition in range(partitions):
            for timestamp_ms in timestamps_ms:
                producer.produce(topic, b"x", partition=partition, timestamp=timestamp_ms)
        assert producer.flush(WITHIN_S) == 0

    def join(self, name: str, topic: str, settings: Mapping[str, str]) -> Consumer:
        """A member that has its partitions; where it is printed it has the name of its client."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.protocol": "consumer",
                "client.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **settings,
            }
        )
        held: list[TopicPartition] = []
        consumer.subscribe([topic], on_assign=lambda _, changed: held.extend(changed))
        for _ in range(int(WITHIN_S / 0.1)):
            if held:
                break
            consumer.poll(0.1)
        assert held, f"{name} was given nothing"
        self.names[consumer.memberid()] = f"ID-OF-{name}"
        return consumer


class Beside:
    """Runs Kafka's tools and its admin client against both sides, all in one JVM."""

    def __init__(self, program: JavaProgram, kafka: Side, muster: Side) -> None:
        self._program = program
        self.kafka = kafka
        self.muster = muster

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.kafka, self.muster

    def groups(self, *arguments: str) -> str:
        """`kafka-consumer-groups`: what it prints of Muster, as of Kafka."""
        return self._run_tool("groups", arguments)

    def configs(self, *arguments: str) -> str:
        """`kafka-configs`: what it prints of Muster, as of Kafka."""
        return self._run_tool("configs", arguments)

    def acls(self, *arguments: str) -> str:
        """`kafka-acls`: what it prints of Muster, as of Kafka."""
        return self._run_tool("acls", arguments)

    def topics(self, *arguments: str) -> str:
        """`kafka-topics`: what it prints of Muster, as of Kafka."""
        return self._run_tool("topics", arguments)

    def admin(self, *words: str, without: Sequence[str] = ()) -> Any:
        """A call of GroupCalls.java, or after `plain` of AdminCalls.java, or after `access` of
        AccessCalls.java: what it comes to.

        Fields whose names begin as in `without` are not compared.
        """
        expected, found = (
            leave_out(
                json.loads(self.ask(side, "admin", side.address, side.config, *words)), without
            )
            for side in self.sides
        )
        check_equal(found, expected, words)
        return found

    def ask(self, side: Side, *words: str) -> str:
        """What one side alone has printed for a tool or a call."""
        self._program.send(json.dumps(words))
        done = self._program.wait_for("done", timeout_s=WITHIN_S)
        printed = side.rename(done["printed"])
        return printed if done["exit"] == 0 else f"{printed}\nexit code {done['exit']}"

    def wait_until_stable(self, group: str) -> None:
        """Until each member of a group has what it is to have, on both sides."""
        for side in self.sides:
            self._wait_until_stable(side, group)

    def _wait_until_stable(self, side: Side, group: str) -> None:
        def look() -> str:
            return self.ask(side, "admin", side.address, side.config, "describe", group)

        wait_until(
            lambda: '"state":"Stable"' in look(), lambda: f"{group} is stable: {look()}", WITHIN_S
        )

    def _run_tool(self, tool: str, arguments: Sequence[str]) -> str:
        def ask(side: Side) -> list[str]:
            config = ("--command-config", side.config) if side.config else ()
            words = (tool, "--bootstrap-server", side.address, *config, *arguments)
            return compute_lines(self.ask(side, *words))

        expected, found = map(ask, self.sides)
        check_equal(found, expected, arguments)
        return "\n".join(found)


def leave_out(value: Any, names: Sequence[str]) -> Any:
    """JSON without the fields whose names begin so, at any depth."""
    match value:
        case dict():
            return {
                name: leave_out(of, names)
                for name, of in value.items()
                if not name.startswith(tuple(names))
            }
        case list():
            return [leave_out(item, names) for item in value]
        case _:
            return value


def check_equal(found: object, expected: object, words: Sequence[str]) -> None:
    """Raises AssertionError that shows both."""
    if found != expected:
        of_kafka, of_muster = (pformat(value, width=180) for value in (expected, found))
        raise AssertionError(f"{' '.join(words)}\nKafka:\n{of_kafka}\nMuster:\n{of_muster}")


def compute_lines(printed: str) -> list[str]:
    """The lines that say something, sorted, with one blank between words."""
    return sorted(" ".join(line.split()) for line in printed.splitlines() if line.strip())
