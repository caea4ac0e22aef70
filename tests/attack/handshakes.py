"""Handshakes of TLS that are not begun, come slowly or are left halfway."""

from __future__ import annotations

import itertools
import resource
import time

from tests.attack.flood import Flood
from tests.attack.lines import make_client_hello
from tests.attack.secure_client import make_context
from tests.attack.stand import Attack, Target

HALF_OPEN = 2_500
"""By strength; an address has so many of them as below."""
PER_ADDRESS = 100
SLOW = 400
HANDSHAKE_S = 10
"""In this time the server gives up a handshake."""
_SPARE_FILES = 1_000
_FIRST_SOURCE = 10
"""The bystander comes from 127.0.0.1."""


def half_open(target: Target, strength: int) -> None:
    """Connections from many addresses, which send nothing, or half of a ClientHello."""
    half_open_at(target, target.kafka, make_client_hello(make_context(target.security)), strength)


def half_open_at(target: Target, address: tuple[str, int], hello: bytes, strength: int) -> None:
    count = min(HALF_OPEN * strength, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_FILES)
    with Flood(address) as flood:
        hold_half_open(flood, hello, count)
        flood.run(3 * strength)
        target.notes.append(f"{flood.open} of {count} are left")


def hold_half_open(flood: Flood, hello: bytes, count: int) -> None:
    for number in range(count // PER_ADDRESS):
        data = hello[: len(hello) // 2] if number % 2 else b""
        flood.connect(PER_ADDRESS, data, source=f"127.0.0.{_FIRST_SOURCE + number}", waits=False)
        flood.run(0.005)


def leave_halfway(target: Target, strength: int) -> None:
    """Whole ClientHellos, for which the server computes, and nothing after its answer."""
    hello = make_client_hello(make_context(target.security))
    leave_halfway_at(target, target.kafka, hello, 4 * strength)


def leave_halfway_at(
    target: Target, address: tuple[str, int], hello: bytes, seconds: float
) -> None:
    opened = 0
    end = time.monotonic() + seconds
    with Flood(address) as flood:
        for number in itertools.cycle(range(100)):
            if time.monotonic() > end:
                break
            if flood.open < HALF_OPEN:
                source = f"127.0.0.{_FIRST_SOURCE + number}"
                flood.connect(20, hello, source=source, waits=False)
                opened += 20
            flood.run(0.02)
        target.notes.append(f"{opened} begun, {flood.open} are left")


def send_slowly(target: Target, strength: int) -> None:
    """ClientHellos that come a byte a second, until the server has closed every one."""
    hello = make_client_hello(make_context(target.security))
    send_slowly_to(target, target.kafka, hello, SLOW * strength)


def send_slowly_to(target: Target, address: tuple[str, int], hello: bytes, count: int) -> None:
    started = time.monotonic()
    with Flood(address) as flood:
        for number in range(count // PER_ADDRESS):
            flood.connect(PER_ADDRESS, source=f"127.0.0.{_FIRST_SOURCE + number}", waits=False)
        for position in range(len(hello)):
            flood.send_each(hello[position : position + 1])
            flood.run(1.0)
            late = time.monotonic() - started - HANDSHAKE_S
            if not flood.open or late > HANDSHAKE_S / 2:
                break
        target.notes.append(f"{flood.closed} of {count} closed in {HANDSHAKE_S + late:.0f} s")
        if flood.open:
            raise AssertionError(f"{flood.open} handshakes of a byte a second go on")


ATTACKS = tuple(
    Attack(
        name,
        run,
        peak_bytes=peak_bytes,
        protocol="SSL",
        settings={"gateway.tls.handshake.timeout.ms": HANDSHAKE_S * 1_000},
        is_quick=False,
    )
    for name, run, peak_bytes in (
        ("TLS: half-open handshakes", half_open, 96 << 20),
        ("TLS: handshakes left halfway", leave_halfway, 96 << 20),
        ("TLS: handshakes of a byte a second", send_slowly, 96 << 20),
    )
)
