"""The topic APIs answer as a real Kafka 4.3.0 does, in every version, to good and bad requests.

``tests/golden/topics/answers.jsonl`` holds what Kafka answered to ``topic_probes``. To record it
again: ``python -m tests.unit.gateway.apis.test_topic_apis_golden``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.groups import CHECKOUT
from tests.kafka.broker import KafkaBroker
from tests.unit.gateway.apis.topic_probes import run_probes
from tests.unit.gateway.apis.topics_rig import run, run_topics

GOLDEN = CHECKOUT / "tests" / "golden" / "topics" / "answers.jsonl"


def read_golden() -> dict[str, Any]:
    rows = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return {row["probe"]: row["answer"] for row in rows}


def ask_kafka() -> dict[str, Any]:
    with KafkaBroker() as broker:
        host, _, port = broker.bootstrap.partition(":")
        return run_probes(host, int(port))


def compare(answers: dict[str, Any], golden: dict[str, Any]) -> list[str]:
    """The probes whose answers differ, with both."""
    plain = json.loads(json.dumps(answers))
    return [
        f"{name}\n  Kafka {golden.get(name)}\n  here  {plain.get(name)}"
        for name in golden.keys() | plain.keys()
        if golden.get(name) != plain.get(name)
    ]


async def test_every_answer_is_kafkas(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        answers = await run(run_probes, "127.0.0.1", rig.port)
    assert len(answers) > 250
    assert not compare(answers, read_golden())


@pytest.mark.kafka
def test_the_recorded_answers_are_kafkas() -> None:
    assert not compare(ask_kafka(), read_golden())


def main() -> None:
    rows = [
        json.dumps({"probe": probe, "answer": answer}, sort_keys=True)
        for probe, answer in sorted(ask_kafka().items())
    ]
    GOLDEN.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
