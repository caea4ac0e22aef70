"""Where a group is must be known before the group is loaded: a client may ask for its coordinator.

Else it would be sent to the cluster, where the group is not.
"""

from __future__ import annotations

from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.groups import ListGroups
from model.commands.places import AdoptGroup, NotePlace
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId
from model.places import Place
from tests.support.virtual.server import Pending, VirtualServer, error_name

GROUPS = [GroupId(f"g{number}") for number in range(9)]


def test_places_are_known_while_groups_are_loading() -> None:
    server = VirtualServer()
    for group in GROUPS:
        server.ask(AdoptGroup(INTERNAL, group, 7, "consumer"))
    server.ask(NotePlace(INTERNAL, GROUPS[0], Place.UPSTREAM))
    server.crash()
    scheduler = server.scheduler
    runtime = Runtime(server.store, CoordinatorSettings(), clock=scheduler, scheduler=scheduler)
    runtime.begin_load()
    assert not runtime.ready()
    listed = Pending()
    runtime.submit(ListGroups(INTERNAL), listed)
    assert error_name(listed.answer) == "COORDINATOR_LOAD_IN_PROGRESS"
    found = [runtime.place_of(group) for group in GROUPS]
    assert found[0] is None
    assert [each.place for each in found[1:] if each is not None] == [Place.MUSTER] * 8
    server.settle()
    assert runtime.ready()
    assert [runtime.place_of(group) for group in GROUPS] == found
