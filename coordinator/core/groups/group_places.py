"""Where groups are, for a Muster in front of a cluster: the side records of their places."""

from __future__ import annotations

from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.places import NotePlace
from model.ids import GroupId
from model.log.side_records import GroupPlaceKey, SideRecord
from model.now import Now
from model.places import GroupPlace, Place
from model.responses.places import PlacesResponse
from model.responses.response import Done


def place_of(shard: Shard, group_id: GroupId) -> Place:
    """The place of a group."""
    known = shard.places.get(group_id)
    return Place.UPSTREAM if known is None else known.place


def compute_place_records(
    shard: Shard, group_id: GroupId, place: Place, now: Now, generation: int = 0
) -> tuple[SideRecord, ...]:
    """The side record of a group's place; none if nothing changes."""
    known = shard.places.get(group_id)
    key = GroupPlaceKey(shard.partition, group_id)
    if place is Place.UPSTREAM:
        return () if known is None else (SideRecord(key, None),)
    since_ms = now.wall_ms
    if known is not None:
        generation = max(generation, known.generation)
        since_ms = known.since_ms if known.place is place else since_ms
    said = GroupPlace(place, since_ms, generation)
    return () if said == known else (SideRecord(key, said),)


def handle_note_place(shard: Shard, command: NotePlace, now: Now) -> Outcome:
    """Note where a group is; the group itself is left as it is."""
    group_id, place = command.group_id, command.place
    side = compute_place_records(shard, group_id, place, now, command.generation)
    return Outcome(side=side, response=Done())


def list_places(shard: Shard) -> list[tuple[GroupId, GroupPlace]]:
    """The places of a shard's groups."""
    return list(shard.places.items())


def compute_places_answer(found: list[tuple[GroupId, GroupPlace]]) -> PlacesResponse:
    """The places of all shards, by group id."""
    return PlacesResponse(tuple(sorted(found, key=lambda pair: pair[0])))
