"""Responses about the places of groups."""

from __future__ import annotations

from model.ids import GroupId
from model.places import GroupPlace
from model.value import value


@value
class PlacesResponse:
    """The places that are noted, by group id in order."""

    places: tuple[tuple[GroupId, GroupPlace], ...]
