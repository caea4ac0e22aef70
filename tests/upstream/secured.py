"""A cluster where rights and users count, Musters in front of it, and what a client hears.

Of the users `ALICE` may read the topic and all groups, `BOB` the topic alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from tests.groups import CHECKOUT
from tests.interop.secured import SecuredServer, allow, create_topics
from tests.interop.security import (
    NO_SECURITY,
    SCRAM_512,
    Security,
    compute_librdkafka_settings,
    write_java_settings,
)
from tests.interop.trust import MTLS, PRINCIPAL_RULES, ROOT, SASL_SSL, SSL, SUPER_USERS, Trust
from tests.kafka.broker import HOST, Setting
from tests.kafka.processes import find_ports
from tests.server import MusterServer
from tests.upstream.scene import WITHIN_S

ALICE, BOB = "alice", "bob"
USERS: Final = (ALICE, BOB, ROOT)
TOPIC: Final = "orders"
PREFIX: Final = "team-"
JOINED: Final = "joined"
"""What a member hears that is let in."""
DONE: Final = "done"
BROKER: Final[dict[str, Setting]] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
}
HEARTBEAT_MS: Final = 500
_ALERT: Final = "SSL alert"
_PLACE: Final = re.compile(r"\S+://\S+: ")
_TOOK: Final = re.compile(r" \(after \d+ms in state \S+\)")
_SPARE_PORTS: Final = 2
_OF_GRPC: Final[dict[str, dict[str, Setting]]] = {
    SSL: {"listener.name.grpc.ssl.client.auth": "required"},
    SASL_SSL: {"listener.name.grpc.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER"},
}


def prepare(cluster: SecuredServer) -> None:
    """The topic with a record, and the rights."""
    create_topics(cluster.plain, {TOPIC: 1})
    producer = Producer({"bootstrap.servers": cluster.plain})
    producer.produce(TOPIC, b"one", partition=0)
    assert producer.flush(WITHIN_S) == 0
    for user in (ALICE, BOB):
        allow(cluster.plain, user, AclOperation.READ, ResourceType.TOPIC, TOPIC)
    allow_groups(cluster, ALICE)


def allow_groups(cluster: SecuredServer, user: str, prefix: str = PREFIX) -> None:
    prefixed = ResourcePatternType.PREFIXED
    allow(cluster.plain, user, AclOperation.READ, ResourceType.GROUP, prefix, prefixed)


def make_front(
    folder: Path,
    cluster: SecuredServer,
    listener: str,
    upstream: str,
    *,
    settings: dict[str, Setting] | None = None,
) -> MusterServer:
    """A Muster whose clients come by ``listener``, and which goes to the cluster's ``upstream``,
    each one of the names in ``tests.interop.trust``. Not started."""
    trust = cluster.trust
    folder.mkdir()
    grpc = SASL_SSL if upstream.startswith("SASL") else SSL
    kafka, *relays = find_ports(2 + _SPARE_PORTS)
    address = cluster.plain if upstream == "PLAINTEXT" else cluster.at(upstream).kafka
    secured: dict[str, Setting] = {
        "ssl.keystore.location": str(trust.server),
        "ssl.truststore.location": str(trust.authority.file),
        "ssl.principal.mapping.rules": PRINCIPAL_RULES,
        "listener.name.mtls.ssl.client.auth": "required",
        **_OF_GRPC[grpc],
        "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
        "upstream.bootstrap.servers": address,
        "upstream.relay.ports": f"{relays[0]}-{relays[-1]}",
        "group.initial.rebalance.delay.ms": 0,
        **_compute_identity(trust, upstream),
        **(settings or {}),
    }
    protocol = {MTLS: "SSL"}.get(listener, listener)
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in secured.items()))
    file.chmod(0o600)
    return MusterServer(
        folder / "data",
        f"--config={file}",
        f"--listen.kafka={listener}:{protocol}://{HOST}:{kafka}",
        f"--listen.grpc={grpc}://{HOST}:0",
    )


def _compute_identity(trust: Trust, upstream: str) -> dict[str, Setting]:
    protocol = {MTLS: "SSL"}.get(upstream, upstream)
    found: dict[str, Setting] = {"upstream.security.protocol": protocol}
    if protocol in ("SSL", SASL_SSL):
        found["upstream.ssl.truststore.location"] = str(trust.authority.file)
    if upstream == MTLS:
        found["upstream.ssl.keystore.location"] = trust.certify(ROOT).certificate
    if protocol.startswith("SASL"):
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        found |= {
            "upstream.sasl.mechanism": SCRAM_512,
            "upstream.sasl.jaas.config": (
                f'{module} required username="{ROOT}" password="{ROOT}-secret";'
            ),
        }
    return found


@dataclass(frozen=True, slots=True)
class Fronted:
    """A running Muster, and the cluster behind. ``root`` administers it."""

    cluster: SecuredServer
    muster: MusterServer
    root: Security
    folder: Path

    def take(self, group: str, security: Security = NO_SECURITY) -> None:
        """Make a group in the cluster, which ends empty, and take it over."""
        with Member(self.cluster.plain, security, group) as member:
            member.listen(lambda: bool(member.heard))
        config = write_java_settings(self.root, self.folder / "root.properties")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "cli", "upstream", "take", group, "--yes"),
                *("--server", self.muster.grpc, "--command-config", str(config)),
            ],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done


@dataclass(slots=True)
class Member:
    """A consumer, and what it hears: `JOINED`, or an error as librdkafka tells it."""

    bootstrap: str
    security: Security
    group: str
    protocol: str = "classic"
    heard: list[str] = field(default_factory=list)
    _consumer: Any = None

    def __enter__(self) -> Member:
        of_protocol: dict[str, Any] = {}
        if self.protocol == "classic":
            of_protocol = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": HEARTBEAT_MS}
        self._consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "group.protocol": self.protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                "error_cb": self._note,
                **of_protocol,
                **compute_librdkafka_settings(self.security),
            }
        )
        self._consumer.subscribe([TOPIC], on_assign=lambda *_: self.heard.append(JOINED))
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def listen(self, is_enough: Callable[[], bool], within_s: float = 30.0) -> float:
        """Poll until it is; how long it took."""
        began_s = time.monotonic()
        while not is_enough():
            took_s = time.monotonic() - began_s
            assert took_s < within_s, self.heard
            message = self._consumer.poll(0.05)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                self._note(error)
        return time.monotonic() - began_s

    def commit(self) -> str:
        """What it hears of a commit: `DONE`, or the name of an error."""
        try:
            self._consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
        except KafkaException as error:
            return str(error.args[0].name())
        return DONE

    def _note(self, error: KafkaError) -> None:
        is_of_brokers = error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)
        if not is_of_brokers or _ALERT in error.str():
            self.heard.append(f"{error.name()}: {_TOOK.sub('', _PLACE.sub('', error.str()))}")


def hear(bootstrap: str, security: Security, group: str, protocol: str = "classic") -> str:
    """The first thing that a member hears."""
    with Member(bootstrap, security, group, protocol) as member:
        member.listen(lambda: bool(member.heard))
        return member.heard[0]
