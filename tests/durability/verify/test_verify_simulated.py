"""What a simulated cluster leaves, crashes and all, is a log without a violation.

Also after Kafka's cleaner has been at it, as at that of an export.
"""

from __future__ import annotations

import random

import pytest

from storage.verify.stores import verify_partition, verify_side
from tests.sim.run import run_liveness_phase, run_safety_phase
from tests.sim.scenario import Scenario
from tests.sim.world import World
from tests.support.storage.cleanings import check_cleaned
from tests.support.storage.plain_store import read_plain
from tests.support.virtual.server import quiet_logs


@pytest.mark.parametrize("seed", range(6))
def test_a_simulated_log_passes(seed: int) -> None:
    quiet_logs()
    world = World(seed)
    scenario = Scenario(world)
    scenario.schedule()
    run_safety_phase(world, scenario)
    run_liveness_phase(world, scenario)
    store = world.disk.store
    store.sync()
    records = 0
    for number in range(store.partitions):
        plain = read_plain(store, number)
        report = verify_partition(plain, plain.number)
        assert report.violation is None, str(report.violation)
        assert verify_side(plain) is None
        records += report.records
        if plain.log:
            check_cleaned([batch for _, batch in plain.log], random.Random(seed), 3)
    assert records > 50
