"""One Kafka 4.3.0 broker as a plain subprocess: KRaft, one node, loopback, its own folder."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from tests.kafka.jars import class_path, ensure_jars
from tests.kafka.prerequisites import check_java
from tests.kafka.probe import lists_brokers
from tests.support.waiting import NotInTime, wait_until

LOG_CONFIG = Path(__file__).with_name("log4j2.xml")
HOST = "127.0.0.1"
CLUSTER_ID = "muster-tests-cluster-0"

Setting: TypeAlias = str | int | bool

# What Kafka's own start script gives its JVM, but for the heap, which starts small here.
SERVER_JVM_OPTIONS = (
    "-server",
    "-Xms256m",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# A broker of a test lives for seconds: the second compiler would take as long again as the start.
SHORT_JVM_OPTIONS = ("-Xms256m", "-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 30.0
_FORMAT_TIMEOUT_S = 60.0
_PORT_ATTEMPTS = 3


class BrokerError(RuntimeError):
    """The broker did not start, or did not get ready in time; the message ends with its log."""


class KafkaBroker:
    """A Kafka broker that lives from `start` to `stop` or `kill`; a context manager does both.

    `settings` override the properties of `default_settings`, by Kafka's names. `listeners` are
    more of them, name to security protocol, each on a port of its own (`address`). `jvm_options`
    come after `jvm`, so the later wins; a broker that is measured has `SERVER_JVM_OPTIONS` there.
    `prefix` is put before the command (`nice`).
    The data outlives `stop` and `kill`: `start` again serves what is there, on the same port where
    that is still free (after `kill` only once `broker.session.timeout.ms` is over, 9 s by default).
    `close` removes everything. `format` without `start` prepares `log_dir`, so that a test can put
    segments there first.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting] | None = None,
        *,
        listeners: Mapping[str, str] | None = None,
        jvm: Sequence[str] = SHORT_JVM_OPTIONS,
        jvm_options: Sequence[str] = (),
        prefix: Sequence[str] = (),
        start_timeout_s: float = _START_TIMEOUT_S,
    ) -> None:
        self._overrides = dict(settings or {})
        self._listeners = dict(listeners or {})
        self._jvm_options = (*jvm, *jvm_options)
        self._prefix = tuple(prefix)
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._libs = ensure_jars()
        self.folder = Path(tempfile.mkdtemp(prefix="muster-kafka-"))
        atexit.register(self.close)
        self.log_dir = self.folder / "data"
        self.log_file = self.folder / "broker.log"
        self._config_file = self.folder / "server.properties"
        self._set_ports()

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{HOST}:{self.port}"

    def address(self, listener: str) -> str:
        """`host:port` of one of the further listeners."""
        return f"{HOST}:{self._ports[listener]}"

    @property
    def pid(self) -> int:
        """Process id of the running broker. Raises BrokerError when it does not run."""
        if self._process is None:
            raise BrokerError("the broker is not running")
        return self._process.pid

    def __enter__(self) -> Self:
        if self._process is not None:
            return self
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def format(self) -> None:
        """Format `log_dir` with the cluster id; nothing is done where that has happened."""
        if (self.log_dir / "meta.properties").exists():
            return
        done = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise BrokerError(f"the broker's folder could not be formatted:\n{done.stdout}")

    def start(self) -> Self:
        """Start the broker and return once it answers and lists itself as a broker."""
        if self._process is not None:
            raise BrokerError("the broker runs already")
        for attempt in range(_PORT_ATTEMPTS):
            self.format()
            if self._try_start():
                return self
            # A port that was free a moment ago may have been taken by another process.
            if attempt + 1 == _PORT_ATTEMPTS or "BindException" not in self.read_log():
                break
            self._set_ports()
        raise BrokerError(f"the broker did not get ready:\n{self.read_log()[-4000:]}")

    def stop(self) -> None:
        """Shut down as SIGTERM does, killing it only when that takes too long. Data stays."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End the broker with SIGKILL. Data stays, as a crash leaves it."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """End the broker and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def read_log(self) -> str:
        """What the broker has printed since its last start."""
        try:
            return self.log_file.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def cpu_seconds(self) -> float:
        """User and system time of all threads of the broker since it started."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        """Resident memory of the broker."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _set_ports(self) -> None:
        self.port, controller_port, *others = _find_free_ports(2 + len(self._listeners))
        self._ports = dict(zip(self._listeners, others, strict=True))
        settings = default_settings(self.port, controller_port, self.log_dir)
        settings |= self._compute_listeners(settings) | self._overrides
        lines = [f"{name}={_format_setting(value)}\n" for name, value in settings.items()]
        self._config_file.write_text("".join(lines))

    def _compute_listeners(self, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """Those of `settings`, and the further ones."""
        more = "".join(f",{name}://{HOST}:{port}" for name, port in self._ports.items())
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}
        return {
            "listeners": f"{settings['listeners']}{more}",
            "advertised.listeners": f"{settings['advertised.listeners']}{more}",
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
        }

    def _try_start(self) -> bool:
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._prefix, *self._java("kafka.Kafka")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        process = self._process
        try:
            wait_until(
                lambda: lists_brokers(HOST, self.port),
                within_s=self._start_timeout_s,
                is_hopeless=lambda: process.poll() is not None,
            )
        except NotInTime:
            self.kill()
            return False
        return True

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        return [
            check_java(),
            *self._jvm_options,
            f"-Dlog4j2.configurationFile={LOG_CONFIG}",
            "-cp",
            class_path(self._libs),
            main_class,
            *arguments,
            str(self._config_file),
        ]


def default_settings(port: int, controller_port: int, log_dir: Path) -> dict[str, Setting]:
    """A single KRaft node on loopback; whatever is not named here is Kafka's own default."""
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
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


def _format_setting(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find_free_ports(count: int) -> list[int]:
    """Ports that nothing listens on; all are held until the last is found, so they differ."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports
