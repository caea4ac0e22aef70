"""The sentinel's membership in the cluster's group."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seat:
    """A member id of the sentinel, and its generation; -1: not known."""

    member_id: str
    generation: int
