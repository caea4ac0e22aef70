"""The quick attacks, each against a server of its own. `make attack` has all, and longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.every import ATTACKS
from tests.attack.stand import Attack, attack_server

LONGEST_WAIT_S = 8.0
"""For the machine of continuous integration, on which the attackers, the server and the bystander
share what other jobs leave. By how much of a turn one client may have, tests count elsewhere
(`tests/unit/gateway/connection/test_wire_fairness.py`); here a wait is that of an attack that
starves others for as long as it lasts, or that of a handshake which is lost again and again.
"""


@pytest.mark.alone
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "attack", [attack for attack in ATTACKS if attack.is_quick], ids=lambda attack: attack.name
)
def test_others_are_served_and_what_was_taken_comes_back(attack: Attack, tmp_path: Path) -> None:
    row = attack_server(attack, tmp_path, longest_wait_s=LONGEST_WAIT_S)
    assert row.broken == []
    assert row.answers > 0
