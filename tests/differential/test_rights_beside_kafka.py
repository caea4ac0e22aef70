"""Each API with each state of the ACLs is answered by Muster as by Kafka's StandardAuthorizer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pprint import pformat
from typing import Any, Final, NamedTuple

import pytest

from model.errors import ErrorCode
from tests.differential import acl_rows
from tests.differential.acl_rows import (
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    ROWS,
    TOPICS,
    make_creations,
    make_filter,
)
from tests.differential.asks import Answers, Ask
from tests.differential.runner import Peers
from tests.differential.sides import admin
from tests.differential.sides.admin import ANSWERED_IN_S
from tests.differential.sides.peers import run_peers
from tests.support.wire.connection import Connection

pytestmark = pytest.mark.kafka

# Whoever asks is anonymous: what no ACL is about is everybody's, so that it may make the ACLs.
ACCESS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
}


class Guarded(NamedTuple):
    """Both sides, and on each the ids of all topics, learnt before there were ACLs."""

    peers: Peers
    ids: Mapping[str, Mapping[str, bytes]]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with run_peers(tmp_path_factory.mktemp("rights"), ACCESS, ACCESS) as peers:
        yield Guarded(peers, asyncio.run(prepare(peers)))


async def prepare(peers: Peers) -> dict[str, dict[str, bytes]]:
    """Topics, offsets, and then the ACLs; the ids of the topics on each side."""
    ids = {}
    for address in (peers.kafka, peers.muster):
        connection = await Connection.open(address, "differential", ANSWERED_IN_S)
        await admin.wait_for_coordinator(connection)
        for name in TOPICS:
            assert not await admin.create_topic(connection, name, 2)
        topics = await admin.describe_topics(connection, TOPICS)
        ids[address] = {name: topic_id for name, (topic_id, _) in topics.items()}
        answers = Answers(connection, ids[address])
        for ask in acl_rows.seeds():
            await answers.ask(ask)
        made = await connection.ask(CREATE_ACLS, 3, creations=make_creations())
        assert {row.error_code for row in made.results} == {ErrorCode.NONE}
        await wait_for_acls(connection, len(make_creations()))
        connection.close()
    return ids


async def wait_for_acls(connection: Connection, count: int) -> None:
    """Until the broker that is asked has the ACLs of the controller."""

    async def are_seen() -> bool:
        found = await connection.ask(DESCRIBE_ACLS, 3, **make_filter())
        assert not found.error_code, found
        return sum(len(row.acls) for row in found.resources) == count

    await admin.wait_until(are_seen, f"there are not {count} ACLs")


async def ask_both(guarded: Guarded, row: Callable[[], Iterator[Ask]]) -> list[str]:
    """The requests that are not answered alike."""
    peers, ids = guarded

    async def ask_all(address: str) -> list[Any]:
        connection = await Connection.open(address, "differential", ANSWERED_IN_S)
        try:
            answers = Answers(connection, ids[address])
            return [await answers.ask(ask) for ask in row()]
        finally:
            connection.close()

    of_kafka, of_muster = await asyncio.gather(ask_all(peers.kafka), ask_all(peers.muster))
    return [
        f"{ask}\nKafka:  {pformat(expected, width=180)}\nMuster: {pformat(found, width=180)}"
        for ask, expected, found in zip(row(), of_kafka, of_muster, strict=True)
        if expected != found
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_rights(guarded: Guarded, row: Callable[[], Iterator[Ask]]) -> None:
    differing = asyncio.run(ask_both(guarded, row))
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:5])


def test_what_was_refused_has_written_nothing(guarded: Guarded) -> None:
    """The last one: it takes the ACLs away."""

    async def compare() -> list[str]:
        for address in (guarded.peers.kafka, guarded.peers.muster):
            connection = await Connection.open(address, "differential", ANSWERED_IN_S)
            await connection.ask(DELETE_ACLS, 3, filters=[make_filter()])
            await wait_for_acls(connection, 0)
            connection.close()
        return await ask_both(guarded, acl_rows.what_is_left)

    assert not asyncio.run(compare())
