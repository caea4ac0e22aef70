"""What a load test is told before it begins, by servers that do not answer what was asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.load.processes.cluster import _Cluster
from cli.load.wire.link import Link
from cli.load.wire.messages import FIND_COORDINATOR, METADATA, MalformedAnswer
from tests.unit.cli.load.test_plan import PLAN

TOPIC = SimpleNamespace(error_code=0, partitions=(), topic_id=bytes(16))
METADATA_OF_ONE = SimpleNamespace(topics=(TOPIC,), brokers=())


class Answers:
    """A connection with an answer for each API."""

    def __init__(self, answers: dict[tuple[int, int], Any]) -> None:
        self._answers = answers

    async def ask(self, api: tuple[int, int], timeout_s: float, **fields: Any) -> Any:
        return self._answers[api]


@pytest.mark.parametrize(
    "answers",
    [
        {METADATA: SimpleNamespace(topics=(), brokers=())},
        {METADATA: SimpleNamespace(topics=(TOPIC, TOPIC), brokers=())},
        {METADATA: METADATA_OF_ONE, FIND_COORDINATOR: SimpleNamespace(coordinators=())},
    ],
)
async def test_an_answer_about_something_else_is_malformed(answers: dict[Any, Any]) -> None:
    """Bug: it was a traceback."""
    cluster = _Cluster(cast(Link, Answers(answers)), PLAN)
    with pytest.raises(MalformedAnswer, match="it does not"):
        await cluster.prepare(None, ["g"])
