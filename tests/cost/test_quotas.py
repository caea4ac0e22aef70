"""Requests under very many client quotas, and the lists and changes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.core.groups.quota_changes import ENTITIES_MAX
from model.access.quotas import QuotaAlteration, QuotaChange
from model.caller import INTERNAL
from model.commands.quotas import ALTERATIONS_PER_COMMAND_MAX, AlterQuotas
from security.quotas.client_quotas import ClientQuotas
from tests.cost.server import CostServer, cost_server
from tests.cost.turns import ATOMIC_STEPS_MAX, Counted
from tests.support.wire.fields import join

DESCRIBE, ALTER, HEARTBEAT = 48, 49, 68


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CostServer]:
    with cost_server(tmp_path) as server:
        yield server


def fill(server: CostServer, count: int) -> None:
    changes = (QuotaChange("request_rate", 5.0), QuotaChange("commit_rate", 5.0))
    for at in range(0, count, ALTERATIONS_PER_COMMAND_MAX):
        numbers = range(at, min(at + ALTERATIONS_PER_COMMAND_MAX, count))
        alterations = [QuotaAlteration((("user", f"u{n}"),), changes) for n in numbers]
        server.call(AlterQuotas(INTERNAL, tuple(alterations)))


def check(counted: Counted, steps_max: int) -> None:
    assert counted.longest <= steps_max, f"{counted.longest} steps in a turn of {counted.total}"


def test_as_many_quotas_as_there_may_be_are_listed(server: CostServer) -> None:
    fill(server, ENTITIES_MAX)
    counted = server.count(DESCRIBE, 1, components=(), strict=False)
    check(counted, ATOMIC_STEPS_MAX)
    assert len(counted.kept[0][1].entries) == ENTITIES_MAX


def test_a_request_may_alter_as_many_as_there_may_be(server: CostServer) -> None:
    entries: list[dict[str, Any]] = [
        {
            "entity": [{"entity_type": "user", "entity_name": f"u{number}"}],
            "ops": [{"key": "request_rate", "value": 5.0, "remove": False}],
        }
        for number in range(ENTITIES_MAX)
    ]
    counted = server.count(ALTER, 1, entries=entries, validate_only=False)
    check(counted, ATOMIC_STEPS_MAX)
    assert {row.error_code for row in counted.kept[0][1].entries} == {0}


def test_quotas_of_others_cost_a_client_nothing(tmp_path: Path) -> None:
    steps = []
    for number, count in enumerate((100, ENTITIES_MAX)):
        quotas = ClientQuotas()
        with cost_server(tmp_path / str(number), quotas=quotas) as server:
            fill(server, count)
            server.create(1, "t")
            server.meter_door()
            steps.append(server.count(HEARTBEAT, 1, **join("g", "m", ("t",))).total)
    assert steps[1] <= steps[0] * 1.1
