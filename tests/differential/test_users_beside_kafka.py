"""Users with SCRAM credentials are managed by Muster as by Kafka, word by word."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from pprint import pformat
from typing import Any, Final

import pytest

from model.errors import ErrorCode
from tests.differential.acl_rows import ALL, ALLOW, ALTER, CLUSTER, DENY, DESCRIBES, LITERAL, ME
from tests.differential.asks import Ask
from tests.differential.runner import Peers
from tests.differential.sides import admin
from tests.differential.sides.admin import ANSWERED_IN_S
from tests.differential.sides.peers import run_peers
from tests.differential.test_rights_beside_kafka import ACCESS, CREATE_ACLS
from tests.differential.user_rows import changes, descriptions, refusals
from tests.support.wire.connection import Connection

pytestmark = [pytest.mark.long, pytest.mark.kafka]

SEEN_IN_S: Final = 20.0


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with run_peers(tmp_path_factory.mktemp("users"), ACCESS, ACCESS) as peers:
        yield peers


def show(value: Any) -> Any:
    """With the messages too, but that of a refusal, in which Kafka shows its objects.

    Lists are sorted, and the throttle time is left out.
    """
    if dataclasses.is_dataclass(value):
        shown = {
            field.name: show(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name != "throttle_time"
        }
        if shown.get("error_code") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            del shown["error_message"]
        return shown
    match value:
        case tuple() | list():
            return sorted((show(item) for item in value), key=repr)
        case int():
            return int(value)
        case _:
            return value


async def ask_all(address: str, asks: Iterator[Ask]) -> list[Any]:
    connection = await Connection.open(address, "differential", ANSWERED_IN_S)
    try:
        return [show(await connection.ask(ask.key, ask.version, **ask.fields)) for ask in asks]
    finally:
        connection.close()


async def find_differing(peers: Peers, rows: Callable[[], Iterator[Ask]]) -> list[str]:
    of_kafka, of_muster = await asyncio.gather(
        ask_all(peers.kafka, rows()), ask_all(peers.muster, rows())
    )
    return [
        f"{ask}\nKafka:  {pformat(expected, width=180)}\nMuster: {pformat(found, width=180)}"
        for ask, expected, found in zip(rows(), of_kafka, of_muster, strict=True)
        if expected != found
    ]


def test_changes(peers: Peers) -> None:
    differing = asyncio.run(find_differing(peers, changes))
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:5])


def test_descriptions(peers: Peers) -> None:
    """The broker that is asked has what was changed a moment after the controller."""

    async def compare() -> list[str]:
        return await admin.ask_while(lambda: find_differing(peers, descriptions), bool, SEEN_IN_S)

    differing = asyncio.run(compare())
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:5])


def test_refusals(peers: Peers) -> None:
    """The last one: nobody may change anything afterwards."""

    def creation(operation: int, permission: int) -> dict[str, Any]:
        return {
            "resource_type": CLUSTER,
            "resource_name": "kafka-cluster",
            "resource_pattern_type": LITERAL,
            "principal": ME,
            "host": "*",
            "operation": operation,
            "permission_type": permission,
        }

    async def compare() -> list[str]:
        # The broker is anonymous too, and keeps its other rights on the cluster.
        for address in (peers.kafka, peers.muster):
            connection = await Connection.open(address, "differential", ANSWERED_IN_S)
            rules = [creation(ALL, ALLOW), creation(ALTER, DENY), creation(DESCRIBES, DENY)]
            made = await connection.ask(CREATE_ACLS, 3, creations=rules)
            assert {row.error_code for row in made.results} == {ErrorCode.NONE}
            connection.close()
        return await admin.ask_while(lambda: find_differing(peers, refusals), bool, SEEN_IN_S)

    differing = asyncio.run(compare())
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:5])
