"""A server under attack, a bystander beside it, and what is measured of both."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.attack.secure_client import connect, is_ready, make_context
from tests.attack.secured import (
    PLAINTEXT,
    SCRAM_USERS,
    Secured,
    make_users,
    secure,
    secure_doors,
)
from tests.groups import CHECKOUT
from tests.interop.security import Security
from tests.server import LISTENERS, MusterServer

LONGEST_WAIT_S: Final = 1.0
"""How long another client may have to wait."""
BACK_BYTES: Final = 160 << 20
"""By so much the memory may be above what it was before: what the allocator keeps, and caches.

Python gives no block of 1 MB back in which anything is left, and uses what is free in it first. So
where more is kept, the attack comes a second time and may leave hardly more.
"""
KEPT_SHARE: Final = 4
"""What is kept may grow by one part in so many."""
DESCRIPTORS_MORE: Final = 12
"""Files of the store, and a connection of the bystander."""
SETTLE_S: Final = 15.0
"""In this time memory and descriptors must have come back."""
LOG_BYTES: Final = 4 << 20
"""So much may the log have: a flood must not fill a disk."""
_TOPICS: Final = {"orders": 12, "wide": 20_000}
_SETTINGS: Final[Mapping[str, object]] = {
    "gateway.park.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.min.session.timeout.ms": 6_000,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.heartbeat.interval.ms": 2_000,
    "gateway.response.total.bytes": 256 << 20,
    "grpc.stream.total.bytes": 256 << 20,
    "queued.max.request.bytes": 256 << 20,
}
"""Heartbeats are answered at once, so that a wait is the attack's doing. Bounds that are a share of
the machine's memory, or of Kafka's defaults, are said, so that a row is the same on any machine."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. ``run`` ends by itself; ``strength`` is 1, or more for a longer one.

    ``peak_bytes`` is how much memory it may make the server take. ``is_quick``: it runs in
    continuous integration. The bystander comes anew every ``rounds`` times. ``protocol`` is that of
    the Kafka listener: with TLS there are a certificate and, with SASL, users (`secured.py`).
    ``secures_doors``: gRPC has TLS and asks for passwords, and HTTP has TLS.
    """

    name: str
    run: Callable[[Target, int], None]
    peak_bytes: int = 512 << 20
    settings: Mapping[str, object] = field(default_factory=dict)
    file_limit: int | None = None
    is_quick: bool = True
    rounds: int = 10
    protocol: str = PLAINTEXT
    secures_doors: bool = False


@dataclass(slots=True)
class Target:
    """Where to attack, and how an attacker comes in. ``notes`` are shown beside the row.

    ``doors`` is how it comes in over gRPC and HTTP, if they have TLS.
    """

    kafka: tuple[str, int]
    grpc: tuple[str, int]
    http: tuple[str, int]
    notes: list[str] = field(default_factory=list)
    security: Security | None = None
    doors: Security | None = None
    longest_wait_s: float = LONGEST_WAIT_S


@dataclass(slots=True)
class Row:
    """What came of it; ``broken`` has a line for each bound that did not hold."""

    name: str
    seconds: float = 0.0
    answers: int = 0
    kafka_s: float = 0.0
    grpc_s: float = 0.0
    before: int = 0
    peak: int = 0
    after: int = 0
    descriptors_before: int = 0
    descriptors_after: int = 0
    notes: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class _Server(MusterServer):
    """Whose HTTP may have TLS."""

    http_context: ssl.SSLContext | None = None

    def _is_ready(self) -> bool:
        if self.http_context is None:
            return super()._is_ready()
        return is_ready(self.address("http"), self.http_context)


class Bystander:
    """The process of `tests.attack.bystander`."""

    def __init__(self, server: MusterServer, rounds: int, secured: Secured) -> None:
        where = [server.kafka, server.grpc, server.http, str(rounds)]
        if secured.security is not None:
            where += ["--security", secured.security.format()]
        if secured.doors is not None:
            where += ["--doors", secured.doors.format()]
        command = [sys.executable, "-m", "tests.attack.bystander", *where]
        self._process = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def take(self) -> dict[str, Any]:
        """What has been since the last time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        assert isinstance(told, dict)
        return told

    def wait_until_served(self, within_s: float = 60.0) -> bool:
        """Whether it is answered over all doors, twice, without an error."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            time.sleep(0.1)
            told = self.take()
            if all(door["answers"] > 1 and not door["errors"] for door in told.values()):
                return True
        return False

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def read_memory(pid: int, name: str = "VmRSS") -> int:
    """Bytes of resident memory, or (VmHWM) the most since `forget_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def forget_peak(pid: int) -> None:
    """Let VmHWM begin anew (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def count_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@contextmanager
def _served(attack: Attack, folder: Path) -> Iterator[tuple[MusterServer, Bystander, Secured]]:
    certificates = folder / "certificates"
    secured = (
        secure_doors(certificates)
        if attack.secures_doors
        else secure(attack.protocol, certificates)
    )
    server = _Server(
        folder / "data",
        topics=_TOPICS,
        settings={**_SETTINGS, **secured.settings, **attack.settings},
        environment=secured.environment,
    )
    server.file_limit = attack.file_limit
    if secured.doors is not None:
        server.http_context = make_context(secured.doors)
    with server:
        if secured.doors is not None or secured.security is not None:
            with connect(server.address("kafka"), secured.security) as client:
                make_users(client, SCRAM_USERS)
        bystander = Bystander(server, attack.rounds, secured)
        try:
            yield server, bystander, secured
        finally:
            bystander.close()


def attack_server(
    attack: Attack, folder: Path, strength: int = 1, longest_wait_s: float = LONGEST_WAIT_S
) -> Row:
    """Run one attack against a server of its own, and look at what came of it."""
    row = Row(attack.name)
    with _served(attack, folder) as (server, bystander, secured):
        if not bystander.wait_until_served():
            raise AssertionError("the bystander is not served before the attack")
        row.before = read_memory(server.pid)
        row.descriptors_before = count_descriptors(server.pid)
        forget_peak(server.pid)
        bystander.take()
        target = Target(
            *(server.address(name) for name in LISTENERS),
            notes=row.notes,
            security=secured.attacker,
            doors=secured.door_attacker,
            longest_wait_s=longest_wait_s,
        )
        started = time.monotonic()
        try:
            attack.run(target, strength)
        except AssertionError as error:
            row.broken.append(str(error))
        row.seconds = time.monotonic() - started
        _look(row, attack, server, bystander, longest_wait_s)
        _check_newcomer(row, server, secured.security)
        if row.after - row.before > BACK_BYTES and not row.broken:
            kept = row.after - row.before
            attack.run(target, strength)
            most = row.before + kept + kept // KEPT_SHARE
            wait_until_below(server.pid, most)
            row.after = read_memory(server.pid)
            if row.after > most:
                grown = f"{kept >> 20} MB kept, then {row.after - row.before >> 20} MB"
                row.broken.append(f"memory: {grown}")
    return row


def _look(
    row: Row, attack: Attack, server: MusterServer, bystander: Bystander, longest_wait_s: float
) -> None:
    assert server.process is not None
    # What the attack has left behind is part of it: a teardown may take long as well.
    time.sleep(0.5)
    told = bystander.take()
    row.answers = sum(door["answers"] for door in told.values())
    waits = {name: door["longest_s"] for name, door in told.items()}
    row.grpc_s = max(wait for name, wait in waits.items() if name.startswith("grpc"))
    row.kafka_s = max(wait for name, wait in waits.items() if not name.startswith(("grpc", "http")))
    if "http" in waits:
        row.notes.append(f"HTTP {waits['http']:.2f} s")
    for name, door in told.items():
        if door["errors"]:
            row.broken.append(f"{name}: the bystander was told {door['errors']}")
        if door["longest_s"] > longest_wait_s:
            row.broken.append(f"{name}: the bystander waited {door['longest_s']:.2f} s")
    if server.process.poll() is not None:
        row.broken.append(f"the server ended with {server.process.returncode}")
        return
    row.peak = read_memory(server.pid, "VmHWM")
    if row.peak - row.before > attack.peak_bytes:
        row.broken.append(f"memory: {row.peak >> 20} MB at the most")
    _wait_until_back(row, server)
    if not bystander.wait_until_served():
        row.broken.append("the bystander is not served afterwards")
    output = server.output()
    if "Traceback" in output:
        row.broken.append("the log has a traceback")
    if len(output) > LOG_BYTES:
        row.broken.append(f"the log has {len(output) >> 20} MB")


def _wait_until_back(row: Row, server: MusterServer) -> None:
    end = time.monotonic() + SETTLE_S
    while True:
        row.after = read_memory(server.pid)
        row.descriptors_after = count_descriptors(server.pid)
        is_back = row.after - row.before <= BACK_BYTES
        descriptors = row.descriptors_after - row.descriptors_before - DESCRIPTORS_MORE
        if (is_back and descriptors <= 0) or time.monotonic() > end:
            break
        time.sleep(0.2)
    if descriptors > 0:
        row.broken.append(
            f"descriptors: {row.descriptors_before} before, {row.descriptors_after} after"
        )


def wait_until_below(pid: int, most: int) -> None:
    """Wait until the memory is at most so many bytes, or for `SETTLE_S`."""
    end = time.monotonic() + SETTLE_S
    while read_memory(pid) > most and time.monotonic() < end:
        time.sleep(0.2)


def _check_newcomer(row: Row, server: MusterServer, security: Security | None) -> None:
    try:
        client = connect(server.address("kafka"), security)
        code = client.commit("newcomer", "orders", 1, 7)
        found = client.offsets("newcomer")
        client.close()
    except OSError as error:
        row.broken.append(f"a client that comes afterwards is not served: {error!r}")
        return
    if code or found != {("orders", 1): 7}:
        row.broken.append(f"a client that comes afterwards is answered {code}, {found}")
