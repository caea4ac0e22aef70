"""The SDK and the servicers with the clocks, the random numbers and the network of a seed.

What is replaced: how the SDK opens a channel and reads its clock, what makes a server of
``grpc.aio``, and where either asks the machine for the time or for something random. Nothing else.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch as mock_patch

import grpc.aio

import muster.classic.classic_member
import muster.member  # noqa: F401 - both imported lazily by the package; patched below
from coordinator.service.session import session as _session  # noqa: F401 - patched below
from muster.connection import shared_clients
from muster.connection.channel import ServerChannel
from tests.sim.sessions.links.channel import SimChannel
from tests.sim.sessions.links.network import Network
from tests.sim.sessions.links.servicers import SimServer
from tests.sim.sessions.machines.loop import VirtualLoop, current_machine

_PACKAGES = ("muster.", "coordinator.service.")


def _find_patches(loop: VirtualLoop, random: Random) -> Iterator[tuple[Any, str, Any]]:
    """Each place in the modules of both that reads a clock or draws lots."""

    def read_clock() -> float:
        return current_machine().read_clock(loop.time())

    def make_uuid() -> uuid.UUID:
        return uuid.UUID(int=random.getrandbits(128), version=4)

    virtual_time = SimpleNamespace(
        monotonic_ns=lambda: int(loop.time() * 1_000_000_000),
        monotonic=loop.time,
        time_ns=lambda: int(loop.time() * 1_000_000_000),
    )
    virtual_uuid = SimpleNamespace(uuid4=make_uuid, UUID=uuid.UUID)
    for name, module in tuple(sys.modules.items()):
        if not name.startswith(_PACKAGES):
            continue
        found = vars(module)
        if "read_clock" in found:
            yield module, "read_clock", read_clock
        if "read_wall_clock_us" in found:
            yield module, "read_wall_clock_us", lambda: int(loop.time() * 1_000_000)
        if found.get("time") is time and name != "muster.connection.lease":
            yield module, "time", virtual_time
        if found.get("uuid") is uuid:
            yield module, "uuid", virtual_uuid
        if getattr(found.get("random"), "__name__", "") == "random":
            yield module, "random", random


@contextmanager
def patched(loop: VirtualLoop, random: Random, network: Network) -> Iterator[None]:
    """As long as a seed runs."""
    patches = [
        *_find_patches(loop, random),
        (ServerChannel, "_open", lambda channel: SimChannel(network)),
        (grpc.aio, "server", lambda **_: SimServer(network)),
    ]
    running = [mock_patch.object(*each) for each in patches]
    for each in running:
        each.start()
    try:
        yield
    finally:
        for each in running:
            each.stop()
        for key in [key for key in shared_clients._SHARED if key[0] is loop]:
            del shared_clients._SHARED[key]
