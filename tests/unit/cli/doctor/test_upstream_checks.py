"""What the doctor says of a cluster of scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cli.data_folder import DataFolder
from cli.doctor.checks.upstream_checks import check_upstream
from cli.doctor.finding import Finding, Level
from cli.doctor.subject import Subject
from cli.settings import resolve
from model.access.acl_codes import OPERATION_CODES
from model.access.acls import Operation
from model.errors import ErrorCode
from tests.support.upstream.fake_broker import HOST, METADATA, FakeCluster

DESCRIBE_GROUPS, LIST_GROUPS, DESCRIBE_ACLS = 15, 16, 29
READ = 1 << OPERATION_CODES[Operation.READ]
DESCRIBE = 1 << OPERATION_CODES[Operation.DESCRIBE]


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(2) as found:
        found.answer(DESCRIBE_ACLS, lambda asked: {"error_code": 0, "resources": ()})
        found.answer(LIST_GROUPS, lambda asked: {"groups": ()})
        yield found


async def examine(cluster: FakeCluster, folder: Path, ports: str = "19092-19093") -> list[Finding]:
    settings = {
        "MUSTER_UPSTREAM_BOOTSTRAP_SERVERS": ",".join(f"{h}:{p}" for h, p in cluster.addresses),
        "MUSTER_UPSTREAM_RELAY_PORTS": ports,
        "MUSTER_UPSTREAM_REQUEST_TIMEOUT_MS": "1000",
    }
    subject = Subject(resolve((), settings), DataFolder(folder), None)
    return await asyncio.to_thread(lambda: list(check_upstream(subject)))


def list_faults(found: list[Finding]) -> list[str]:
    return [each.what for each in found if each.level is Level.FAIL]


async def test_a_cluster_that_may_be_stood_in_front_of(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    found = await examine(cluster, tmp_path)
    assert list_faults(found) == []
    assert "all 2 of its brokers" in found[0].what
    assert "it shows its ACLs" in [each.what for each in found]


async def test_too_few_relay_ports(cluster: FakeCluster, tmp_path: Path) -> None:
    (line,) = list_faults(await examine(cluster, tmp_path, ports="19092"))
    assert "1 relay ports" in line


async def test_another_cluster_than_that_of_the_folder(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    (tmp_path / "upstream").write_text("another-cluster-entirely\n")
    (line,) = list_faults(await examine(cluster, tmp_path))
    assert "another-cluster-entirely" in line


async def test_a_cluster_without_brokers_that_answer(tmp_path: Path) -> None:
    async with FakeCluster() as cluster:
        addresses = cluster.addresses
    settings = {
        "MUSTER_UPSTREAM_BOOTSTRAP_SERVERS": f"{addresses[0][0]}:{addresses[0][1]}",
        "MUSTER_UPSTREAM_RELAY_PORTS": "19092",
    }
    subject = Subject(resolve((), settings), DataFolder(tmp_path), None)
    (found,) = await asyncio.to_thread(lambda: list(check_upstream(subject)))
    assert found.level is Level.FAIL
    assert "check upstream.bootstrap.servers" in found.what


async def test_rights_that_are_missing(cluster: FakeCluster, tmp_path: Path) -> None:
    refused = {"error_code": int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), "resources": ()}
    cluster.answer(DESCRIBE_ACLS, lambda asked: refused)
    topics = {"orders": READ | DESCRIBE, "wages": DESCRIBE}
    cluster.answer(METADATA, lambda asked: describe_topics(cluster, asked, topics))
    cluster.coordinators = {"billing": 1, "audit": 2}
    cluster.answer(LIST_GROUPS, lambda asked: list_groups(cluster, asked))
    cluster.answer(DESCRIBE_GROUPS, describe_group)
    found = await examine(cluster, tmp_path)
    (line,) = list_faults(found)
    assert "CLUSTER_AUTHORIZATION_FAILED" in line
    lacking = [each for each in found if "may not read" in each.what]
    assert [each.what for each in lacking] == [
        "Muster may not read 1 of 2 topics that it sees: wages",
        "Muster may not read 1 of 2 groups that it sees: audit",
    ]
    assert all("--operation Read" in each.remedy for each in lacking)


def describe_topics(cluster: FakeCluster, asked: Any, topics: dict[str, int]) -> dict[str, Any]:
    rows = [{"node_id": n, "host": HOST, "port": b.port} for n, b in cluster.brokers.items()]
    shown = topics if asked.request.topics is None else {}
    return {
        "brokers": tuple(rows),
        "cluster_id": cluster.cluster_id,
        "controller_id": 1,
        "topics": tuple(
            {"name": name, "partitions": (), "topic_authorized_operations": operations}
            for name, operations in shown.items()
        ),
    }


def list_groups(cluster: FakeCluster, asked: Any) -> dict[str, Any]:
    names = [n for n, owner in cluster.coordinators.items() if owner == asked.broker.node_id]
    return {"groups": tuple({"group_id": n, "protocol_type": "consumer"} for n in names)}


def describe_group(asked: Any) -> dict[str, Any]:
    (name,) = asked.request.groups
    assert asked.request.include_authorized_operations
    operations = DESCRIBE | (READ if name == "billing" else 0)
    return {
        "groups": (
            {
                "group_id": name,
                "group_state": "Empty",
                "protocol_type": "consumer",
                "members": (),
                "authorized_operations": operations,
            },
        )
    }
