"""One server with real members, and one Chromium, for all tests of a module.

Playwright's event loop runs as long as Chromium does: no other tests may run in its process
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import pytest
from playwright.sync_api import Browser

from muster.v1 import access_pb2, access_pb2_grpc, admin_pb2, admin_pb2_grpc
from tests.server import MusterServer
from tests.support.console.chromium import open_chromium
from tests.support.console.crew import Crew
from tests.support.waiting import wait_until

GROUP = "billing"
LOCKED = "locked"
CLASSIC = "ledger-app"
HOSTILE = "<b>bold</b>\x1b[31m\"'/?#&é"
TOPIC = "orders"
PARTITIONS = 12
SETTINGS = {
    "authorizer.class.name": "StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
WITHIN_S = 60.0


@dataclass
class Scene:
    """The server, its members, and what it says over gRPC."""

    server: MusterServer
    crew: Crew
    channel: grpc.Channel

    @property
    def origin(self) -> str:
        return f"http://{self.server.http}"

    @property
    def admin(self) -> admin_pb2_grpc.AdminServiceStub:
        return admin_pb2_grpc.AdminServiceStub(self.channel)

    def describe(self, group_id: str = GROUP) -> admin_pb2.Group:
        return self.admin.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id=group_id)).group

    def wait_for_members(self, count: int, group_id: str = GROUP) -> None:
        """Until so many members have all that they are to have."""

        def is_settled() -> bool:
            try:
                group = self.describe(group_id)
            except grpc.RpcError:
                return False
            return len(group.members) == count and group.state == admin_pb2.GROUP_STATE_STABLE

        wait_until(is_settled, within_s=WITHIN_S)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def scene(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    pytest.importorskip("confluent_kafka")
    folder = tmp_path_factory.mktemp("console")
    topics = {TOPIC: PARTITIONS, "payments": 3}
    with (
        MusterServer(folder / "data", topics=topics, settings=SETTINGS) as server,
        Crew(server.kafka, server.grpc) as crew,
        grpc.insecure_channel(server.grpc) as channel,
    ):
        made = Scene(server, crew, channel)
        _deny_changes(channel)
        crew.produce(TOPIC, 500)
        crew.join("billing-1", GROUP, TOPIC)
        made.wait_for_members(1)
        crew.join_by_sdk("billing-2", GROUP, TOPIC)
        crew.join("locked-1", LOCKED, TOPIC)
        crew.join(HOSTILE, HOSTILE, "payments")
        crew.join(
            "ledger-1", CLASSIC, TOPIC,
            group_protocol="classic", partition_assignment_strategy="range",
        )  # fmt: skip
        made.wait_for_members(2)
        for group_id in (LOCKED, HOSTILE, CLASSIC):
            made.wait_for_members(1, group_id)
        yield made


def _deny_changes(channel: grpc.Channel) -> None:
    """Nobody may freeze the locked group, or change its configs; all else is allowed."""
    stub = access_pb2_grpc.AccessServiceStub(channel)
    acls = [
        access_pb2.Acl(
            resource_type="GROUP",
            resource_name=LOCKED,
            pattern_type="LITERAL",
            principal="User:*",
            host="*",
            operation=operation,
            permission=permission,
        )
        for operation, permission in (("ALL", "ALLOW"), ("ALTER_CONFIGS", "DENY"))
    ]
    stub.CreateAcls(access_pb2.CreateAclsRequest(acls=acls))
