"""`muster upstream release --bootstrap-servers` against a cluster of scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from tests.support.upstream.fake_broker import Asked, FakeCluster
from tests.unit.cli.admin.test_admin_commands import Result, invoke
from upstream.sentinel.sentinel_sign import SentinelSign, encode_signed_assignment

LEAVE, DESCRIBE, LIST = 13, 15, 16


def make_member(member_id: str, instance_id: str | None, port: int) -> dict[str, Any]:
    sign = SentinelSign("uuid", "127.0.0.1", port)
    return {
        "member_id": member_id,
        "group_instance_id": instance_id,
        "client_id": "c",
        "client_host": "/127.0.0.1",
        "member_metadata": b"",
        "member_assignment": encode_signed_assignment(sign, [("orders", 0)]),
    }


class Groups:
    """Groups of a cluster of two brokers: ``here`` has a sentinel, ``stock`` has none."""

    def __init__(self, cluster: FakeCluster, port: int) -> None:
        self.cluster = cluster
        self.members = {
            "here": [make_member("s-1", "muster", port)],
            "stock": [make_member("m-1", None, port)],
        }
        self.left: list[tuple[str, str, str | None]] = []
        self.refusal = 0
        cluster.coordinators = {"here": 1, "stock": 2}
        cluster.answer(DESCRIBE, self._describe)
        cluster.answer(LIST, self._list)
        cluster.answer(LEAVE, self._leave)

    def _list(self, asked: Asked) -> dict[str, Any]:
        node = asked.broker.node_id
        names = [name for name, owner in self.cluster.coordinators.items() if owner == node]
        return {"groups": tuple({"group_id": n, "protocol_type": "consumer"} for n in names)}

    def _describe(self, asked: Asked) -> dict[str, Any]:
        return {
            "groups": tuple(
                {
                    "group_id": name,
                    "group_state": "Stable" if name in self.members else "Dead",
                    "protocol_type": "consumer",
                    "protocol_data": "muster",
                    "members": tuple(self.members.get(name, ())),
                }
                for name in asked.request.groups
            )
        }

    def _leave(self, asked: Asked) -> dict[str, Any]:
        (row,) = asked.request.members
        self.left.append((asked.request.group_id, row.member_id, row.group_instance_id))
        if not self.refusal:
            self.members[asked.request.group_id] = []
        member = {"member_id": row.member_id, "group_instance_id": row.group_instance_id}
        return {"members": ({**member, "error_code": self.refusal},)}

    async def run(self, *arguments: str) -> Result:
        servers = ",".join(f"{host}:{port}" for host, port in self.cluster.addresses)
        return await asyncio.to_thread(
            invoke, "upstream", "release", *arguments, "--bootstrap-servers", servers
        )


@pytest.fixture
async def groups() -> AsyncIterator[Groups]:
    # A port on which nothing listens, once it is closed.
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    async with FakeCluster(2) as cluster:
        yield Groups(cluster, port)


async def test_the_sentinel_is_removed_by_its_ids(groups: Groups) -> None:
    tried = await groups.run("here", "--dry-run", "-o", "csv")
    assert (tried.exit_code, tried.out.splitlines()[1:]) == (0, ["here,muster,0,0,,ok"])
    assert groups.left == []
    done = await groups.run("here", "--yes", "-o", "csv")
    assert (done.exit_code, done.out.splitlines()[1:]) == (0, ["here,upstream,0,0,,ok"])
    assert groups.left == [("here", "s-1", "muster")]
    again = await groups.run("here", "--yes")
    assert (again.exit_code, len(groups.left)) == (ExitCode.NOT_FOUND, 1)
    assert again.error == "here: GROUP_ID_NOT_FOUND: no Muster has it"


async def test_all_are_those_with_a_sentinel(groups: Groups) -> None:
    done = await groups.run("--all", "--yes", "-o", "csv")
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == ["here"]
    assert groups.left == [("here", "s-1", "muster")]
    none = await groups.run("--all", "--yes")
    assert (none.exit_code, none.error) == (ExitCode.NOT_FOUND, "there is no such group")


async def test_a_group_whose_muster_still_listens_is_not_released(groups: Groups) -> None:
    is_closed = asyncio.Event()

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        await writer.wait_closed()
        is_closed.set()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    groups.members["here"] = [make_member("s-1", "muster", port)]
    refused = await groups.run("here", "--yes")
    await is_closed.wait()
    server.close()
    assert refused.exit_code == ExitCode.PRECONDITION
    assert f"127.0.0.1:{port} has the group and is running" in refused.error
    assert groups.left == []


async def test_it_asks_before_it_removes_anything(groups: Groups) -> None:
    unasked = await groups.run("here")
    assert unasked.exit_code == ExitCode.USAGE
    assert "--yes" in unasked.error
    assert groups.left == []


async def test_a_refusal_of_the_cluster_is_named(groups: Groups) -> None:
    groups.refusal = 30
    refused = await groups.run("here", "--yes")
    assert refused.exit_code == ExitCode.PRECONDITION
    assert "the cluster answered GROUP_AUTHORIZATION_FAILED" in refused.error
    missing = await groups.run("none", "--yes")
    assert missing.exit_code == ExitCode.NOT_FOUND
    assert missing.error == "none: GROUP_ID_NOT_FOUND: no Muster has it"


@pytest.mark.parametrize(
    ("servers", "code", "said"),
    [
        ("127.0.0.1", ExitCode.USAGE, "127.0.0.1 is not HOST:PORT"),
        ("127.0.0.1:1", ExitCode.UNREACHABLE, "127.0.0.1:1"),
    ],
)
def test_servers_that_cannot_be_used_are_said_in_one_line(
    servers: str, code: ExitCode, said: str
) -> None:
    result = invoke("upstream", "release", "g", "--yes", "--bootstrap-servers", servers)
    assert (result.exit_code, len(result.error.splitlines())) == (code, 1)
    assert said in result.error


def test_a_login_that_cannot_be_used_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    result = invoke(
        "upstream", "release", "g", "--bootstrap-servers", "h:1", "--command-config", str(file)
    )
    assert (result.exit_code, len(result.error.splitlines())) == (ExitCode.USAGE, 1)
    file.write_text("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
    result = invoke(
        "upstream", "release", "g", "--bootstrap-servers", "h:1", "--command-config", str(file)
    )
    assert "GSSAPI is not one of" in result.error
