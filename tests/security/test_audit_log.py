"""The audit log of a real server: by default, moved away, and in a flood of refusals."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx

from tests.server import MusterServer
from tests.support.waiting import wait_until
from tests.support.wire.blocking import Client
from tests.support.wire.fields import commit

FIND = 10
STANDARD = {"authorizer.class.name": "StandardAuthorizer"}
ADMIN = STANDARD | {"super.users": "User:ANONYMOUS"}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if '"event"' in line]


def find(client: Client, *groups: str) -> list[int]:
    answer = client.ask(FIND, 4, key_type=0, coordinator_keys=groups)
    return [row.error_code for row in answer.coordinators]


def read_metrics(server: MusterServer) -> str:
    return httpx.get(f"http://{server.http}/metrics", trust_env=False).text


def test_with_an_authorizer_refusals_are_on_standard_output(tmp_path: Path) -> None:
    with MusterServer(tmp_path / "data", settings=STANDARD) as server:
        with Client(server.address("kafka")) as client:
            assert find(client, "g") == [30]
        wait_until(lambda: "authorization_refused" in server.output())
        (line,) = [line for line in server.output().splitlines() if "authorization_refused" in line]
        event = json.loads(line)
        del event["time"]
        assert event == {
            "event": "authorization_refused",
            "principal": "User:ANONYMOUS",
            "client_id": "c",
            "host": "127.0.0.1",
            "listener": "PLAINTEXT",
            "operation": "DESCRIBE",
            "resource_type": "GROUP",
            "resource_name": "g",
        }
        metrics = read_metrics(server)
        assert 'muster_audit_lines_total{kind="authorization_refused"} 1.0' in metrics


def test_a_file_that_is_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with MusterServer(tmp_path / "data", settings=ADMIN | {"audit.log": path}) as server:
        with Client(server.address("kafka")) as client:

            def reset(offset: int) -> None:
                client.ask(8, 8, **commit("g", "orders", {0: offset}))

            client.ask(
                19,
                5,
                topics=[{"name": "orders", "num_partitions": 1, "replication_factor": 1}],
            )
            reset(1)
            wait_until(lambda: len(read(path)) == 2)
            path.rename(tmp_path / "audit.log-1")
            os.kill(server.pid, signal.SIGHUP)
            wait_until(path.exists)
            reset(2)
            wait_until(lambda: read(path))
            # Without a signal too.
            path.rename(tmp_path / "audit.log-2")
            reset(3)
            wait_until(path.exists)
            wait_until(lambda: read(path))
        assert server.terminate() == 0
    offsets = [
        event["after"]["offsets"]["orders-0"]
        for name in ("audit.log-1", "audit.log-2", "audit.log")
        for event in read(tmp_path / name)
        if event["change"] == "OffsetCommit"
    ]
    assert offsets == [1, 2, 3]
    assert path.stat().st_mode & 0o077 == 0


def test_a_flood_of_refusals_is_bounded_and_hides_no_change(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    settings = STANDARD | {"audit.log": path, "audit.rate.max": 20}
    settings |= {"allow.everyone.if.no.acl.found": "true"}
    with MusterServer(tmp_path / "data", settings=settings) as server:
        with Client(server.address("kafka")) as client:
            deny = {
                "resource_type": 3,
                "resource_name": "x",
                "resource_pattern_type": 4,
                "principal": "User:ANONYMOUS",
                "host": "*",
                "operation": 2,
                "permission_type": 2,
            }
            client.ask(30, 3, creations=[deny])
            began = time.monotonic()
            for number in range(20):
                names = [f"x{number}-{each}" for each in range(1_000)]
                assert set(find(client, *names)) == {30}
            seconds = time.monotonic() - began
            client.ask(
                19,
                5,
                topics=[{"name": "orders", "num_partitions": 1, "replication_factor": 1}],
            )
            asked = time.monotonic()
            assert find(client, "good") == [0]
            assert time.monotonic() - asked < 1
        metrics = read_metrics(server)
        assert server.terminate() == 0
    events = read(path)
    changes = [event["change"] for event in events if event["event"] == "changed"]
    assert changes == ["CreateAcls", "CreateTopic"]
    refused = [event for event in events if event["event"] == "authorization_refused"]
    assert len(refused) <= 20 * (int(seconds) + 2)
    told = sum(
        event["counts"]["authorization_refused"] for event in events if event["event"] == "left_out"
    )
    assert told + len(refused) == 20_000
    assert 'muster_audit_lines_left_out_total{kind="authorization_refused"}' in metrics
