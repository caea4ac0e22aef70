"""Each API by each principal, over SASL_SSL, is answered as by Kafka's StandardAuthorizer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pprint import pformat
from typing import Any, Final, NamedTuple

import pytest

from model.errors import ErrorCode
from tests.differential import principal_rows
from tests.differential.acl_rows import CREATE_ACLS
from tests.differential.asks import LEFT_OUT, Answers, Ask
from tests.differential.principal_rows import (
    INIT_PRODUCER,
    PRINCIPALS,
    READS_ONLY,
    ROWS,
    TOPICS,
    make_creations,
)
from tests.differential.sides import admin
from tests.differential.sides.admin import ANSWERED_IN_S
from tests.differential.sides.peers import KAFKAS, SETTINGS
from tests.differential.test_rights_beside_kafka import wait_for_acls
from tests.interop.secured import SecuredServer, run_secured, run_secured_kafka
from tests.interop.trust import SASL_SSL, Trust, password_of
from tests.support.wire.connection import Connection
from tests.support.wire.sasl import log_in

pytestmark = [pytest.mark.long, pytest.mark.kafka]

SASL_AUTHENTICATION_FAILED: Final = 58
MUSTERS: Final = {"gateway.park.ms": 0, "offsets.transactional.commits": "all"}
Row = Callable[[str], Iterator[Ask]]


class Guarded(NamedTuple):
    """A side, and the ids of its topics."""

    server: SecuredServer
    ids: dict[str, bytes]

    async def open(self, user: str) -> Connection:
        """As a principal that has logged in."""
        connection = await self.connect()
        answer = await log_in(connection, user, password_of(user))
        assert not answer.error_code, answer
        return connection

    async def connect(self) -> Connection:
        tls = ssl.create_default_context(cafile=str(self.server.trust.authority.file))
        address = self.server.at(SASL_SSL).kafka
        return await Connection.open(address, "differential", ANSWERED_IN_S, tls)

    async def ask_all(self, connection: Connection, asks: Iterator[Ask]) -> list[Any]:
        # Each side gives out ids of producers of its own.
        answers = Answers(connection, self.ids, (*LEFT_OUT, "producer_id"))
        return [await answers.ask(ask) for ask in asks]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, Guarded]]:
    folder = tmp_path_factory.mktemp("principals")
    trust = Trust(folder)
    users = tuple(PRINCIPALS)
    with ExitStack() as stack:
        kafka = stack.enter_context(run_secured_kafka(trust, users, SETTINGS | KAFKAS))
        muster = stack.enter_context(
            run_secured(folder, trust, users, SETTINGS, kafkas=KAFKAS, musters=MUSTERS)
        )
        yield asyncio.run(prepare(kafka)), asyncio.run(prepare(muster))


async def prepare(server: SecuredServer) -> Guarded:
    """Topics, offsets and ACLs, by an administrator."""
    connection = await Connection.open(server.plain, "differential", ANSWERED_IN_S)
    await admin.wait_for_coordinator(connection)
    for name in TOPICS:
        assert not await admin.create_topic(connection, name, 2)
    topics = await admin.describe_topics(connection, TOPICS)
    guarded = Guarded(server, {name: topic_id for name, (topic_id, _) in topics.items()})
    await guarded.ask_all(connection, principal_rows.seeds())
    made = await connection.ask(CREATE_ACLS, 3, creations=make_creations())
    assert {row.error_code for row in made.results} == {ErrorCode.NONE}
    await wait_for_acls(connection, len(make_creations()))
    await wait_for_producer_ids(connection)
    await connection.end()
    return guarded


async def wait_for_producer_ids(connection: Connection) -> None:
    """Until the broker has fetched its first ids from the controller."""

    async def are_there() -> bool:
        fields = {"transactional_id": None, "transaction_timeout": 10_000}
        return not (await connection.ask(INIT_PRODUCER, 2, **fields)).error_code

    await admin.wait_until(are_there, "there are no ids of producers")


async def ask_as(guarded: Guarded, user: str, rows: tuple[Row, ...]) -> list[Any]:
    connection = await guarded.open(user)
    try:
        return [await guarded.ask_all(connection, row(user)) for row in rows]
    finally:
        await connection.end()


def find_differences(asks: Iterator[Ask], of_kafka: list[Any], of_muster: list[Any]) -> list[str]:
    return [
        f"{ask}\nKafka:  {pformat(expected, width=180)}\nMuster: {pformat(found, width=180)}"
        for ask, expected, found in zip(asks, of_kafka, of_muster, strict=True)
        if expected != found
    ]


@pytest.mark.parametrize("user", PRINCIPALS)
def test_rights(sides: tuple[Guarded, Guarded], user: str) -> None:
    async def ask_both() -> tuple[list[Any], ...]:
        kafka, muster = sides
        before = await look(muster), count_written(muster)
        answers = await asyncio.gather(*(ask_as(side, user, ROWS) for side in (kafka, muster)))
        if user in READS_ONLY:
            assert (await look(muster), count_written(muster)) == before, "nothing was written"
        return tuple(answers)

    of_kafka, of_muster = asyncio.run(ask_both())
    differing = [
        difference
        for row, expected, found in zip(ROWS, of_kafka, of_muster, strict=True)
        for difference in find_differences(row(user), expected, found)
    ]
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:5])


async def look(guarded: Guarded) -> list[Any]:
    """What there is, as an administrator sees it."""
    connection = await Connection.open(guarded.server.plain, "differential", ANSWERED_IN_S)
    try:
        return await guarded.ask_all(connection, principal_rows.what_is_there())
    finally:
        await connection.end()


def count_written(guarded: Guarded) -> int | None:
    """How many records a Muster has written."""
    server = guarded.server
    return None if server.muster is None else server.count_records_written()


def test_what_was_refused_has_written_nothing(sides: tuple[Guarded, Guarded]) -> None:
    async def look_at_both() -> list[str]:
        of_kafka, of_muster = await asyncio.gather(*map(look, sides))
        return find_differences(principal_rows.what_is_there(), of_kafka, of_muster)

    assert not asyncio.run(look_at_both())


REFUSED: Final = (
    ("literal", "wrong"),
    ("nobody-at-all", "wrong"),
    ("literal", ""),
    ("", ""),
)


@pytest.mark.parametrize(("user", "password"), REFUSED)
def test_who_is_not_known_is_refused_alike(
    sides: tuple[Guarded, Guarded], user: str, password: str
) -> None:
    """The answer is the same for an unknown user as for a wrong password, and is the last one."""

    async def try_it(guarded: Guarded) -> tuple[int, str]:
        connection = await guarded.connect()
        answer = await log_in(connection, user, password)
        assert await connection.is_closed()
        return answer.error_code, answer.error_message

    async def try_both() -> list[tuple[int, str]]:
        return [await try_it(side) for side in sides]

    of_kafka, of_muster = asyncio.run(try_both())
    assert of_muster == of_kafka
    assert of_kafka[0] == SASL_AUTHENTICATION_FAILED
