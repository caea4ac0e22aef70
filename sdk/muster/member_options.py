"""What a member of a consumer group says of itself when it joins."""

from __future__ import annotations

from dataclasses import dataclass

from muster.client_assignor import Assignor


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """The fields of a Join that stay the same, and whether the member rejoins once it is lost."""

    topics: tuple[str, ...]
    topic_regex: str
    rebalance_timeout_ms: int
    server_assignor: str
    rack_id: str
    client_id: str
    instance_id: str
    rejoin: bool
    assignors: tuple[Assignor, ...] = ()
    incarnation: int = 0
    """Tells the users of one member id apart; 0 if the id was generated, so nobody shares it."""
