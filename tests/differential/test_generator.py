"""What sequences may have in them, so that both sides can be compared."""

from __future__ import annotations

import pytest

from tests.differential.generator import generate
from tests.differential.seen import Mode
from tests.differential.steps import Beat, Commit, Epoch, Fetch

SEEDS = 400


@pytest.mark.parametrize("kind", [Beat, Commit, Fetch])
def test_where_settled_groups_are_compared_nobody_says_the_epoch_that_it_was_told_before(
    kind: type[Beat | Commit | Fetch],
) -> None:
    sequences = [generate(seed) for seed in range(SEEDS)]
    settled = [each for each in sequences if each.mode is Mode.SETTLED]

    said = [step.epoch for each in settled for step in each.steps if isinstance(step, kind)]

    assert Epoch.CURRENT in said
    assert Epoch.PREVIOUS not in said
