"""What a server tells systemd, as the socket of a service manager receives it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from cli.serve.service_manager import ServiceManager
from tests.server import MusterServer
from tests.support.certificates import Authority

PID = 4711
WAIT_S = 60.0


class Listener:
    """The end of the socket that systemd has."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(WAIT_S)

    def hear(self) -> dict[str, str]:
        """The next message that is not of the watchdog."""
        while True:
            lines = self.socket.recv(4_096).decode().split("\n")
            message = dict(line.split("=", 1) for line in lines)
            if "WATCHDOG" not in message:
                return message

    def hear_watchdog(self) -> None:
        while "WATCHDOG=1" not in self.socket.recv(4_096).decode():
            pass


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    found = Listener(str(tmp_path / "notify"))
    yield found
    found.socket.close()


def test_a_server_tells_when_it_is_ready_reloads_and_stops(
    tmp_path: Path, listener: Listener
) -> None:
    keystore = Authority(tmp_path).issue("localhost").both
    environment = {
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "400000",
        "MUSTER_SSL_KEYSTORE_LOCATION": str(keystore),
    }
    arguments = ("--listen.kafka=SSL://127.0.0.1:0",)
    with MusterServer(tmp_path / "data", *arguments, environment=environment) as server:
        assert listener.hear() == {"STATUS": "loading groups"}
        assert listener.hear() == {"READY": "1", "STATUS": "serving"}
        for _ in range(3):
            listener.hear_watchdog()
        asked_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        os.kill(server.pid, signal.SIGHUP)
        reloading = listener.hear()
        assert reloading.pop("RELOADING") == "1"
        assert int(reloading["MONOTONIC_USEC"]) >= asked_us
        assert listener.hear() == {"READY": "1", "STATUS": "serving"}
        # The certificate was read between the two.
        assert "certificate_replaced" in server.output()
        os.kill(server.pid, signal.SIGTERM)
        assert listener.hear() == {"STOPPING": "1", "STATUS": "stopping"}
        assert server.process is not None
        assert server.process.wait(WAIT_S) == 0


async def test_an_abstract_socket_is_one_too() -> None:
    name = f"muster-test-{os.getpid()}-{time.monotonic_ns()}"
    found = Listener(f"\0{name}")
    manager = ServiceManager({"NOTIFY_SOCKET": f"@{name}"}, PID)
    manager.tell_ready()
    assert found.hear() == {"READY": "1", "STATUS": "serving"}
    found.socket.close()


async def test_the_variables_are_not_for_child_processes(tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": "x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2", "HOME": "/"}
    ServiceManager(environment, PID)
    assert environment == {"HOME": "/"}


async def test_without_a_manager_nothing_is_sent() -> None:
    manager = ServiceManager({"WATCHDOG_USEC": "1000"}, PID)
    with capture_logs() as logs:
        manager.tell_loading()
        manager.tell_ready()
        manager.tell_stopping()
        await asyncio.sleep(0)
    assert logs == []


async def test_a_manager_that_is_gone_is_told_of_once(tmp_path: Path) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}, PID)
    with capture_logs() as logs:
        manager.tell_ready()
        manager.tell_stopping()
    assert [entry["event"] for entry in logs] == ["service_manager_unreachable"]


async def test_before_it_is_ready_a_reload_is_not_told(tmp_path: Path, listener: Listener) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")}, PID)
    manager.tell_reloading()
    manager.tell_reloaded()
    manager.tell_ready()
    assert listener.hear()["READY"] == "1"
    manager.tell_stopping()
    manager.tell_reloaded()
    assert "STOPPING" in listener.hear()
    listener.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.hear()


@pytest.mark.parametrize(
    ("environment", "reports"),
    [
        ({"WATCHDOG_USEC": "2000"}, True),
        ({"WATCHDOG_USEC": "2000", "WATCHDOG_PID": str(PID)}, True),
        ({"WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
        ({"WATCHDOG_USEC": "often"}, False),
        ({}, False),
    ],
)
async def test_the_watchdog_hears_of_the_process_that_it_means(
    environment: dict[str, str], reports: bool, tmp_path: Path, listener: Listener
) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify"), **environment}, PID)
    manager.tell_ready()
    assert listener.hear()["READY"] == "1"
    listener.socket.setblocking(False)
    if reports:
        listener.hear_watchdog()
        await asyncio.sleep(0.05)
        listener.hear_watchdog()
    else:
        with pytest.raises(BlockingIOError):
            listener.hear_watchdog()
    manager.tell_stopping()


async def test_a_full_queue_is_tried_again(tmp_path: Path, listener: Listener) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")}, PID)
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filler.sendto(b"WATCHDOG=0", str(tmp_path / "notify"))
            sent += 1
    manager.tell_ready()
    for _ in range(sent):
        listener.socket.recv(64)
    heard = asyncio.to_thread(listener.hear)
    assert (await heard)["READY"] == "1"
    filler.close()
    manager.tell_stopping()
