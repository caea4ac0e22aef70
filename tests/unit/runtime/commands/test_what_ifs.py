"""Questions about groups whose members chose odd ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.core.whatif.question import compute_new_member_id
from coordinator.runtime.commands.what_ifs import HUNG_MAX, RUNNING_MAX, TIME_LIMIT_MS
from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.what_if import ComputeWhatIf
from model.errors import CoordinatorNotAvailable
from model.ids import GroupId
from model.what_if import WhatIf, WhatIfAnswer
from tests.support.virtual.server import CALLER, Pending, VirtualServer

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


class Hanging:
    """In place of threads: what is handed over is kept, and never done unless it is let go."""

    def __init__(self, server: VirtualServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.kept: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        monkeypatch.setattr(server.scheduler, "run_apart", lambda *handed: self.kept.append(handed))

    def ask(self) -> Pending:
        asked = self.server.submit(ComputeWhatIf(CALLER, G, WhatIf(G, add=1)))
        self.server.settle()
        return asked

    def let_go(self, number: int) -> None:
        work, done = self.kept[number]
        done(work())


def test_what_hangs_holds_no_place_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    server = VirtualServer({"foo": 6})
    server.join("g", "a", ["foo"])
    hanging = Hanging(server, monkeypatch)
    first = [hanging.ask() for _ in range(RUNNING_MAX)]
    server.advance(1_000)
    waiting = hanging.ask()
    assert len(hanging.kept) == RUNNING_MAX
    server.advance(TIME_LIMIT_MS - 500)
    assert all(isinstance(each.answer, CoordinatorNotAvailable) for each in first)
    assert len(hanging.kept) == RUNNING_MAX + 1, "the next one has its place"
    hanging.let_go(RUNNING_MAX)
    server.settle()
    assert isinstance(waiting.answer, WhatIfAnswer)
    # What ends after all is no answer any more, and gives no second place back.
    for number in range(RUNNING_MAX):
        hanging.let_go(number)
    again = [hanging.ask() for _ in range(RUNNING_MAX + 1)]
    assert len(hanging.kept) == 2 * RUNNING_MAX + 1
    assert not any(each.is_answered for each in again)


def test_only_so_many_may_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    server = VirtualServer({"foo": 6})
    server.join("g", "a", ["foo"])
    hanging = Hanging(server, monkeypatch)
    for _ in range(HUNG_MAX + RUNNING_MAX + 3):
        hanging.ask()
        server.advance(TIME_LIMIT_MS + 1)
    assert len(hanging.kept) == HUNG_MAX + RUNNING_MAX
    hanging.let_go(0)
    asked = hanging.ask()
    assert len(hanging.kept) == HUNG_MAX + RUNNING_MAX, "there are no more places than before"
    server.advance(TIME_LIMIT_MS + 1)
    assert isinstance(asked.answer, CoordinatorNotAvailable)
