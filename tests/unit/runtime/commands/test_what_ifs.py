"""Questions about groups whose members chose odd ids."""

from __future__ import annotations

import pytest

from coordinator.core.whatif.question import compute_new_member_id
from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.what_if import ComputeWhatIf
from model.ids import GroupId
from model.what_if import WhatIf, WhatIfAnswer
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
GRACE = ConfigChange("consumer.leave.grace.ms", ConfigOperation.SET, "60000")


@pytest.mark.parametrize(
    ("protocol", "assignor"), [(None, None), ("classic", "range"), ("classic", "sticky")]
)
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_member_with_the_id_of_a_newcomer_is_another_one(
    protocol: str | None, assignor: str | None, is_removed: bool
) -> None:
    server = VirtualServer({"foo": 6})
    odd = compute_new_member_id(G, 0)
    server.join("g", odd, ["foo"])
    remove = (odd,) if is_removed else ()
    question = WhatIf(G, add=2, remove=remove, protocol=protocol, assignor=assignor)
    answer = server.ask(ComputeWhatIf(CALLER, G, question))
    assert isinstance(answer, WhatIfAnswer), answer
    loads = {load.member_id: (load.before, load.after) for load in answer.loads}
    after = None if is_removed else 2
    each = 3 if is_removed else 2
    new = [compute_new_member_id(G, index) for index in (1, 2)]
    assert loads == {odd: (6, after), new[0]: (None, each), new[1]: (None, each)}


def test_a_member_that_has_gone_is_none_of_a_classic_group() -> None:
    server = VirtualServer({"foo": 6})
    server.ask(AlterGroupConfigs(INTERNAL, G, (GRACE,)))
    for member in "ab":
        server.join("g", member, ["foo"])
    for member in "abab":
        server.ask(server.acknowledge_command("g", member))
    server.leave("g", "a")
    question = WhatIf(G, protocol="classic", assignor="range")
    answer = server.ask(ComputeWhatIf(CALLER, G, question))
    assert isinstance(answer, WhatIfAnswer), answer
    assert [(load.before, load.after) for load in answer.loads] == [(3, None), (3, 6)]
