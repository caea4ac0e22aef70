"""Metadata while the cluster does not answer: as it was, and nothing waits behind it for long."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.apis.fronted.remembered_metadata import LINK_TIMEOUT_S, PATIENCE_S
from gateway.fronting.remembered import ALL_BYTES_MAX, ONE_BYTES_MAX, Question, RememberedAnswers
from tests.support.gateway.fake_coordinator import VirtualClock
from tests.support.gateway.scripted_front import Passed, ScriptedFront, make_response
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.waiting import until
from tests.support.wire.connection import Connection

METADATA, FIND_COORDINATOR = 3, 10
BROKER = {"node_id": 1, "host": "real", "port": 9092, "rack": "r"}


class Cluster:
    """It answers, or is silent."""

    def __init__(self) -> None:
        self.is_silent = False
        self.controller = 1

    def answer(self, asked: Passed) -> dict[str, Any] | None:
        if self.is_silent:
            return None
        return {"brokers": [BROKER], "controller_id": self.controller, "cluster_id": "c"}


async def read_controller(connection: Connection) -> int:
    _, answer = await connection.read(METADATA, 9)
    return int(answer.controller_id)


def find_client(rig: Rig) -> Any:
    """The server's side of the only connection."""
    assert rig.server._shared is not None
    (served,) = rig.server._shared.connections
    return served


async def test_a_silent_cluster_is_as_it_was() -> None:
    cluster, clock = Cluster(), VirtualClock()
    front = ScriptedFront(cluster.answer)
    async with run_rig(front=front, clock=clock) as rig, await rig.connect() as connection:
        await connection.ask(METADATA, 9)
        cluster.is_silent = True
        connection.send(METADATA, 9)
        await until(lambda: len(front.asked) == 2)
        clock.advance(PATIENCE_S - 0.1)
        assert find_client(rig).unanswered
        clock.advance(0.1)
        assert await read_controller(connection) == 1
        connection.send(METADATA, 9)
        assert await read_controller(connection) == 1
        assert len(front.asked) == 2, "nothing more is passed on while it is silent"
        async with await rig.connect() as other:
            other.send(METADATA, 9)
            await until(lambda: len(front.asked) == 3)
            clock.advance(PATIENCE_S)
            assert await read_controller(other) == 1


async def test_what_waits_behind_it_goes_on() -> None:
    cluster, clock = Cluster(), VirtualClock()
    front = ScriptedFront(cluster.answer)
    async with run_rig(front=front, clock=clock) as rig, await rig.connect() as connection:
        await connection.ask(METADATA, 9)
        cluster.is_silent = True
        connection.send(METADATA, 9)
        connection.send(FIND_COORDINATOR, 3, key="t", key_type=1)
        await until(lambda: len(front.asked) == 2)
        clock.advance(PATIENCE_S)
        assert await read_controller(connection) == 1
        await until(lambda: len(front.asked) == 3)


async def test_a_cluster_that_is_back_is_asked_again() -> None:
    cluster, clock = Cluster(), VirtualClock()
    front = ScriptedFront(cluster.answer)
    async with run_rig(front=front, clock=clock) as rig, await rig.connect() as connection:
        await connection.ask(METADATA, 9)
        cluster.is_silent = True
        connection.send(METADATA, 9)
        await until(lambda: len(front.asked) == 2)
        clock.advance(PATIENCE_S)
        await read_controller(connection)
        cluster.is_silent, cluster.controller = False, 2
        late = {"brokers": [BROKER], "controller_id": 3, "cluster_id": "c"}
        front.links[0].put(make_response(front.asked[1], late))
        passing = find_client(rig).passing
        await until(lambda: not passing.is_behind)
        connection.send(METADATA, 9)
        assert await read_controller(connection) == 2


async def test_a_link_that_is_silent_for_long_is_left_for_another() -> None:
    cluster, clock = Cluster(), VirtualClock()
    front = ScriptedFront(cluster.answer)
    async with run_rig(front=front, clock=clock) as rig, await rig.connect() as connection:
        await connection.ask(METADATA, 9)
        cluster.is_silent = True
        connection.send(METADATA, 9)
        await until(lambda: len(front.asked) == 2)
        clock.advance(LINK_TIMEOUT_S)
        assert await read_controller(connection) == 1
        assert front.links[0].is_closed
        cluster.is_silent, cluster.controller = False, 2
        connection.send(METADATA, 9)
        assert await read_controller(connection) == 2
    assert len(front.links) == 2


async def test_a_cluster_that_cannot_be_reached_is_as_it_was() -> None:
    cluster = Cluster()
    front = ScriptedFront(cluster.answer)
    async with run_rig(front=front) as rig:
        async with await rig.connect() as connection:
            await connection.ask(METADATA, 9)
        front.is_reachable = False
        async with await rig.connect() as connection:
            connection.send(METADATA, 9)
            assert await read_controller(connection) == 1
        async with await rig.connect() as connection:
            connection.send(METADATA, 10)
            assert await connection.is_closed(), "that was never asked before"


@pytest.mark.parametrize("other", [Question("b", 1, b"x"), Question("a", 2, b"x")])
def test_nobody_gets_the_answer_to_another_question(other: Question) -> None:
    answers = RememberedAnswers()
    answers.note(Question("a", 1, b"x"), b"answer")
    assert answers.find(Question("a", 1, b"x")) == b"answer"
    assert answers.find(other) is None


def test_memory_is_bounded() -> None:
    answers = RememberedAnswers()
    body = b"." * (ONE_BYTES_MAX - 4)
    questions = [Question("a", number, b"1234") for number in range(12)]
    for question in questions:
        answers.note(question, body)
        answers.note(question, body)
    kept = [question for question in questions if answers.find(question) is not None]
    assert kept == questions[-(ALL_BYTES_MAX // ONE_BYTES_MAX) :]
    answers.note(questions[-1], body + b".....")
    assert answers.find(questions[-1]) is None
