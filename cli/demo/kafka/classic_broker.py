"""A Kafka broker without the consumer protocol, as many clusters are: KRaft, one node, loopback."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cli.demo.kafka.maven_jars import BROKER, KAFKA_VERSION, ensure_artefacts, find_user_cache
from cli.demo.kafka.prerequisites import check_java
from cli.demo.processes import Process
from cli.errors import CommandError

HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 60.0
_ASK_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.2
_CLUSTER_ID: Final = "muster-demo-cluster-00"
_JVM_OPTIONS: Final = ("-server", "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC")
_MODULE: Final = "cli.demo.kafka.run_command"
_LOG_CONFIG: Final = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="error">
  <Appenders>
    <Console name="console" target="SYSTEM_ERR"><PatternLayout pattern="%p %m%n"/></Console>
  </Appenders>
  <Loggers><Root level="error"><AppenderRef ref="console"/></Root></Loggers>
</Configuration>
"""


class ClassicBroker:
    """The broker, its data in ``folder``. Raises ``MissingPrerequisite`` when it is made."""

    def __init__(self, folder: Path) -> None:
        self.version = KAFKA_VERSION
        self.process: Process | None = None
        self._folder = folder
        self._java = check_java()
        self._libs = ensure_artefacts(find_user_cache() / f"kafka-{KAFKA_VERSION}", BROKER)
        self._port, self._controller_port = find_free_ports(2)

    @property
    def bootstrap(self) -> str:
        """``HOST:PORT`` for clients."""
        return f"{HOST}:{self._port}"

    async def start(self) -> None:
        """Format its folder, start it, and wait until it answers. Raises ``CommandError``."""
        folder = self._folder / "kafka"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log4j2.xml").write_text(_LOG_CONFIG)
        settings = compute_settings(self._port, self._controller_port, folder / "data")
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (folder / "server.properties").write_text("".join(lines))
        formatting = self._make_process(
            "kafka-format", "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c"
        )
        await formatting.start(lambda line: None)
        if await formatting.wait(START_TIMEOUT_S) != 0:
            raise CommandError(f"Kafka's folder could not be formatted:\n{formatting.tail()}")
        self.process = self._make_process("kafka", "kafka.Kafka")
        await self.process.start(lambda line: None)
        await self._wait_until_ready()

    async def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic. Raises ``CommandError``."""

        def create() -> None:
            topic = NewTopic(name, num_partitions=partitions, replication_factor=1)
            # The client has to live until the answer.
            admin = self._make_admin()
            admin.create_topics([topic])[name].result(START_TIMEOUT_S)

        try:
            await asyncio.to_thread(create)
        except KafkaException as error:
            raise CommandError(f"the demo's topic could not be created: {error}") from error

    async def _wait_until_ready(self) -> None:
        assert self.process is not None
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s and self.process.exit_code is None:
            if await asyncio.to_thread(self._lists_itself):
                return
            await asyncio.sleep(_POLL_S)
        raise CommandError(f"the demo's Kafka did not start:\n{self.process.tail()}")

    def _lists_itself(self) -> bool:
        try:
            with socket.create_connection((HOST, self._port), _ASK_TIMEOUT_S):
                pass
            return bool(self._make_admin().list_topics(timeout=_ASK_TIMEOUT_S).brokers)
        except (OSError, KafkaException):
            return False

    def _make_admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _make_process(self, name: str, main_class: str, *arguments: str) -> Process:
        folder = self._folder / "kafka"
        return Process(
            name,
            _MODULE,
            self._java,
            *_JVM_OPTIONS,
            f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}",
            "-cp",
            str(self._libs / "*"),
            main_class,
            *arguments,
            str(folder / "server.properties"),
            folder=self._folder,
        )


def compute_settings(port: int, controller_port: int, log_dir: Path) -> Mapping[str, str | int]:
    """A single node with classic groups only; what is not named is Kafka's own default."""
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(log_dir),
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.coordinator.rebalance.protocols": "classic",
    }


def find_free_ports(count: int) -> list[int]:
    """Ports that nothing listens on; all are held until the last is found, so they differ."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports
