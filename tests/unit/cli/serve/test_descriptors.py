"""File descriptors: the shares of the listeners, and the reserve for the log."""

from __future__ import annotations

import re
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.serve.descriptors import (
    CODECS,
    ConnectionLimits,
    TooFewDescriptors,
    compute_needed,
    compute_plan,
    describe_lowered,
)
from gateway.connection.listener import compute_accepted
from storage.rocks.rocks_options import compute_open_files_max
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.waiting import wait_until
from tests.support.wire.frames import frame, make_request

SET = ConnectionLimits(20_000, 10_000, 256)
VERSIONS = 18


def test_nothing_is_lowered_where_all_of_it_fits() -> None:
    needed = compute_needed(SET, 256)
    plan = compute_plan(needed, SET, 256)
    assert plan.limits == SET
    assert plan.topic_files == 256
    assert describe_lowered(needed, SET, plan.limits) is None
    assert compute_plan(needed - 1, SET, 256).limits.kafka < SET.kafka


@pytest.mark.parametrize("limit", [128, 256, 1_024, 4_096, 20_000])
def test_there_are_descriptors_left_for_the_log_whoever_connects(limit: int) -> None:
    limits, topic_files, backlog, accepted = compute_plan(limit, SET, 256)
    assert min(limits) >= 1
    assert 1 <= accepted <= compute_accepted(backlog)
    # HTTP listens as often, and has as many to refuse.
    listening = backlog + 2 * (accepted - 1)
    taken = sum(limits) + topic_files + listening + compute_open_files_max(limit)
    assert limit - taken >= 32
    assert limits.kafka > limits.grpc >= limits.http
    line = describe_lowered(limit, SET, limits)
    assert line is not None
    assert f"max.connections 20000 to {limits.kafka}" in line
    assert "\n" not in line


def test_too_few_to_serve_anybody() -> None:
    with pytest.raises(TooFewDescriptors, match="ulimit -n"):
        compute_plan(100, SET, 256)


def test_codecs_are_there_when_no_descriptor_is_left() -> None:
    """Bug: the first commit with metadata then got an error, and so did all later ones."""
    program = """
import resource
from cli.serve.descriptors import CODECS, load_codecs
load_codecs()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
print([len("ab".encode(name)) for name in CODECS])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[4, 4]\n", done.stderr
    used = set()
    for room in ("coordinator", "model", "gateway", "storage"):
        for path in (CHECKOUT / room).rglob("*.py"):
            used |= set(re.findall(r'encode\("(utf-16[\w-]*)"', path.read_text()))
    assert used <= set(CODECS)


def is_served(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=30) as client:
            client.sendall(frame(VERSIONS, 0, 7, make_request(VERSIONS, 0)))
            return client.recv(8)[4:] == (7).to_bytes(4, "big")
    except ConnectionError:
        return False


def test_more_idle_connections_than_descriptors_do_not_end_the_server(tmp_path: Path) -> None:
    """Bug: connections took the last descriptor, and the log could not open its next file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = MusterServer(tmp_path / "data", topics={"t": 1})
    server.file_limit = 256
    with server:
        idle = []
        for number in range(300):
            idle.append(socket.create_connection(server.address(("kafka", "http")[number % 2])))
        for _ in range(10):
            opened = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
            assert opened < 256 - compute_open_files_max(256)
            time.sleep(0.02)
        for each in idle:
            each.close()
        wait_until(lambda: is_served(server.address("kafka")))
        assert server.terminate() == 0
    assert "lowered max.connections 20000 to" in server.output()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
