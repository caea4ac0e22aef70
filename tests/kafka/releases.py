"""A Kafka cluster of any release: brokers, and ZooKeeper where the release has it.

    with start_cluster(KAFKA_3_9_1, brokers=3) as cluster:
        cluster.kill(cluster.find_controller())

KRaft brokers are controllers too, so one of three may be down. What is not set is Kafka's own
default, the initial rebalance delay of 3 s included.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.kafka.broker import CLUSTER_ID, Setting
from tests.kafka.jars import class_path, ensure_jars
from tests.kafka.prerequisites import check_java
from tests.kafka.probe import Brokers, fetch_brokers, fetch_coordinator
from tests.kafka.processes import HOST, ServerFailed, ServerProcess, find_ports
from tests.kafka.release import (
    KAFKA_2_8_2,
    KAFKA_3_9_1,
    KAFKA_4_3_0,
    KAFKA_4_3_CLASSIC,
    RELEASES,
    Release,
)
from tests.kafka.tools import SHORT_RUN_JVM_OPTIONS
from tests.support.waiting import wait_until_answered

__all__ = (
    "KAFKA_2_8_2",
    "KAFKA_3_9_1",
    "KAFKA_4_3_0",
    "KAFKA_4_3_CLASSIC",
    "RELEASES",
    "KafkaCluster",
    "Release",
    "start_cluster",
)

_READY_WITHIN_S: Final = 90.0
_TOOL_WITHIN_S: Final = 60.0
_JVM_OPTIONS: Final = ("-Xms128m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_CONTROLLER: Final = "CONTROLLER"


def start_cluster(
    release: Release,
    brokers: int = 1,
    settings: Mapping[str, Setting] | None = None,
    *,
    listeners: Mapping[str, str] | None = None,
    advertised: Mapping[str, str] | None = None,
    scram_users: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> KafkaCluster:
    """A running cluster; see `KafkaCluster`. Raises ServerFailed, MissingPrerequisite."""
    cluster = KafkaCluster(
        release,
        brokers,
        settings,
        listeners=listeners,
        advertised=advertised,
        scram_users=scram_users,
        folder=folder,
    )
    try:
        return cluster.start()
    except BaseException:
        cluster.close()
        raise


class KafkaCluster:
    """Brokers with the ids 1 to `brokers`, each of which can be stopped, killed and started again.

    `settings` override those of every broker. `listeners` are more of them, name to security
    protocol, each on ports of its own (`bootstrap_of`); `advertised` are the hosts of those that
    are advertised at another. `scram_users` have their passwords from the start. Logs and data are
    in `folder`, which is removed by `close` if none was given.
    """

    def __init__(
        self,
        release: Release,
        brokers: int = 1,
        settings: Mapping[str, Setting] | None = None,
        *,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
        scram_users: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.release = release
        self.brokers = tuple(range(1, brokers + 1))
        self._is_own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="muster-cluster-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._libs = ensure_jars(name=release.jars)
        self._listeners = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        self._advertised = dict(advertised or {})
        self._scram_users = dict(scram_users or {})
        self._settings = dict(settings or {})
        names = (*self._listeners, _CONTROLLER)
        self._zookeeper_port, *ports = find_ports(1 + len(names) * brokers)
        self._ports = {broker: {name: ports.pop() for name in names} for broker in self.brokers}
        self._servers = {broker: self._make_broker(broker) for broker in self.brokers}
        self._zookeeper = self._make_zookeeper() if release.has_zookeeper else None
        atexit.register(self.close)

    @property
    def bootstrap(self) -> str:
        """For clients: `host:port` of every broker."""
        return self.bootstrap_of("PLAINTEXT")

    def bootstrap_of(self, listener: str) -> str:
        """The same of another listener."""
        return ",".join(self.address(broker, listener) for broker in self.brokers)

    def address(self, broker: int, listener: str = "PLAINTEXT") -> str:
        """`host:port` of one broker."""
        return f"{HOST}:{self._ports[broker][listener]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> Self:
        """All of it; returns when each broker lists them all."""
        if self._zookeeper is not None:
            self._zookeeper.start()
            self._add_scram_users_to_zookeeper()
        else:
            for broker in self.brokers:
                self._format(broker)
        for server in self._servers.values():
            server.start()
        for broker in self.brokers:
            self._wait_until_listed(broker)
        return self

    def start_broker(self, broker: int) -> None:
        """Start a broker that was stopped or killed; returns when the others list it."""
        self._servers[broker].start()
        for each in self._find_running():
            self._wait_until_listed(each)

    def stop(self, broker: int) -> None:
        """As SIGTERM does: the broker gives its partitions up first."""
        self._servers[broker].stop()

    def kill(self, broker: int) -> None:
        """SIGKILL. The cluster forgets the broker's session some seconds later."""
        self._servers[broker].kill()

    def signal(self, broker: int, number: int) -> None:
        """SIGSTOP makes a broker that holds its connections and answers nothing."""
        self._servers[broker].signal(number)

    def find_controller(self) -> int:
        """The broker that Metadata names; on KRaft that is any broker."""
        return self._ask().controller

    def find_active_controller(self) -> int:
        """The broker that leads KRaft's quorum."""
        words = ("--bootstrap-server", self.bootstrap, "describe", "--status")
        done = self.run_tool("org.apache.kafka.tools.MetadataQuorumCommand", *words)
        found = re.search(r"^LeaderId:\s+(\d+)", done.stdout, re.MULTILINE)
        assert found, done
        return int(found[1])

    def find_coordinator(self, group: str) -> int:
        """The broker that coordinates a group, once there is one."""

        def ask() -> int:
            return fetch_coordinator(*self._where(self._find_running()[0]), group)

        return wait_until_answered(ask, lambda found: found > 0, f"{group} has a coordinator")

    def run_tool(self, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A tool of this release, as `release.consumer_groups`; its exit code is not checked."""
        return subprocess.run(
            self._java(SHORT_RUN_JVM_OPTIONS, main_class, arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TOOL_WITHIN_S,
            check=False,
        )

    def read_log(self, broker: int) -> str:
        """The end of what a broker printed."""
        return self._servers[broker].read_log()

    def close(self) -> None:
        """End all, and remove the folder if it is this cluster's own."""
        for server in self._servers.values():
            server.kill()
        if self._zookeeper is not None:
            self._zookeeper.kill()
        if self._is_own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def _find_running(self) -> list[int]:
        return [broker for broker in self.brokers if self._servers[broker].is_running]

    def _where(self, broker: int) -> tuple[str, int]:
        return HOST, self._ports[broker]["PLAINTEXT"]

    def _ask(self) -> Brokers:
        return fetch_brokers(*self._where(self._find_running()[0]))

    def _wait_until_listed(self, broker: int) -> None:
        def is_ready() -> bool:
            found = fetch_brokers(*self._where(broker))
            # librdkafka's admin client waits for a minute where no controller is named.
            return set(self._find_running()) <= found.ids and found.controller in found.ids

        self._servers[broker].wait_until_ready(is_ready, _READY_WITHIN_S)

    def _format(self, broker: int) -> None:
        scram = [
            word
            for name, password in self._scram_users.items()
            for mechanism in _SCRAM
            for word in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        words = ("format", "-t", CLUSTER_ID, *scram, "-c", str(self._config_file(broker)))
        self._check_tool("kafka.tools.StorageTool", *words)

    def _add_scram_users_to_zookeeper(self) -> None:
        for name, password in self._scram_users.items():
            secrets = ",".join(f"{mechanism}=[password={password}]" for mechanism in _SCRAM)
            where = ("--zookeeper", f"{HOST}:{self._zookeeper_port}", "--alter")
            entity = ("--entity-type", "users", "--entity-name", name)
            self._check_tool(self.release.configs, *where, *entity, "--add-config", secrets)

    def _check_tool(self, main_class: str, *arguments: str) -> None:
        done = self.run_tool(main_class, *arguments)
        if done.returncode != 0:
            raise ServerFailed(f"{main_class} failed:\n{done.stdout}\n{done.stderr}")

    def _make_broker(self, broker: int) -> ServerProcess:
        settings = self._compute_settings(broker)
        self._config_file(broker).write_text("".join(_format_settings(settings)))
        command = self._java(_JVM_OPTIONS, "kafka.Kafka", [str(self._config_file(broker))])
        return ServerProcess(f"broker-{broker}", command, self.folder)

    def _make_zookeeper(self) -> ServerProcess:
        file = self.folder / "zookeeper.properties"
        settings: dict[str, Setting] = {
            "dataDir": str(self.folder / "zookeeper"),
            "clientPort": self._zookeeper_port,
            "clientPortAddress": HOST,
            "admin.enableServer": False,
            "maxClientCnxns": 0,
        }
        file.write_text("".join(_format_settings(settings)))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return ServerProcess("zookeeper", self._java(_JVM_OPTIONS, main, [str(file)]), self.folder)

    def _config_file(self, broker: int) -> Path:
        return self.folder / f"broker-{broker}.properties"

    def _compute_settings(self, broker: int) -> dict[str, Setting]:
        ports = self._ports[broker]
        doors = ",".join(f"{name}://{HOST}:{ports[name]}" for name in self._listeners)
        protocols = {_CONTROLLER: "PLAINTEXT", **self._listeners}
        copies = min(3, len(self.brokers))
        in_sync = min(2, len(self.brokers))
        settings: dict[str, Setting] = {
            "listeners": doors,
            "advertised.listeners": ",".join(
                f"{name}://{self._advertised.get(name, HOST)}:{ports[name]}"
                for name in self._listeners
            ),
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.folder / f"data-{broker}"),
            "default.replication.factor": copies,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 10,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": 10,
            "auto.create.topics.enable": False,
            **self.release.settings,
        }
        if self.release.has_zookeeper:
            settings |= {
                "broker.id": broker,
                "zookeeper.connect": f"{HOST}:{self._zookeeper_port}",
                "zookeeper.session.timeout.ms": 6_000,
            }
        else:
            settings |= self._compute_kraft_settings(broker, doors)
        return settings | self._settings

    def _compute_kraft_settings(self, broker: int, doors: str) -> dict[str, Setting]:
        voters = {each: self._ports[each][_CONTROLLER] for each in self.brokers}
        return {
            "process.roles": "broker,controller",
            "node.id": broker,
            "controller.quorum.voters": ",".join(
                f"{each}@{HOST}:{port}" for each, port in voters.items()
            ),
            "listeners": f"{doors},{_CONTROLLER}://{HOST}:{voters[broker]}",
            "controller.listener.names": _CONTROLLER,
        }

    def _java(self, options: Sequence[str], main_class: str, arguments: Sequence[str]) -> list[str]:
        classes = ("-cp", class_path(self._libs))
        return [check_java(), *options, self.release.logging, *classes, main_class, *arguments]


def _format_settings(settings: Mapping[str, Setting]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{name}={str(value).lower() if isinstance(value, bool) else value}\n"
