"""A group of stock members and a machine that takes it, for tests of the machine."""

from __future__ import annotations

from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.move_driver import GROUP, MoveDriver
from tests.sim.upstream.stock_member import StockMember
from upstream.takeover.machine.takeover_actions import (
    Action,
)
from upstream.takeover.machine.takeover_events import (
    Asked,
    Heard,
    MemberTimes,
)
from upstream.takeover.machine.takeover_steps import Step


def join_stock(model: ClusterModel, count: int, instance_ids: bool = False) -> list[StockMember]:
    """A stable group of stock members."""
    members = [
        StockMember(model, GROUP, f"stock{i}", instance_id=f"i{i}" if instance_ids else None)
        for i in range(count)
    ]
    for member in members:
        member.join()
    model.advance(model.now_ms + model.initial_delay_ms)
    assert all(member.is_assigned for member in members)
    return members


def begin(count: int = 3) -> tuple[ClusterModel, list[StockMember], MoveDriver]:
    """A stable group whose members all came through a relay."""
    model = ClusterModel()
    members = join_stock(model, count)
    muster = MoveDriver(model)
    muster.known = {member.member_id: MemberTimes() for member in members}
    return model, members, muster


def hear(muster: MoveDriver, members: list[StockMember]) -> None:
    """All members come to Muster's node."""
    muster.send(*(Heard(member.member_id, member.generation) for member in members))


def take(muster: MoveDriver, members: list[StockMember]) -> None:
    muster.send(Asked("an operator"))
    hear(muster, members)
    muster.pass_time(500)
    assert muster.is_at(Step.HERE), muster.move


def stop_at(muster: MoveDriver, kind: type[Action], when: str) -> None:
    """From the first action of this kind on nothing more happens: the process has ended."""
    ended: list[Action] = []
    perform = muster._perform

    def end(action: Action) -> list:  # type: ignore[type-arg]
        if ended:
            return []
        if isinstance(action, kind):
            ended.append(action)
            if when == "after":
                perform(action)
            muster.events.clear()
            return []
        return perform(action)

    muster._perform = end  # type: ignore[method-assign]


def restart(muster: MoveDriver) -> MoveDriver:
    again = MoveDriver(muster.model, place=muster.place, here=set(muster.here))
    again.noted_generation = muster.noted_generation
    again.adopted = muster.adopted
    again.start()
    return again
