"""Clients that the members of one event loop share, one or more for each target."""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias

from muster.connection.client import Client
from muster.credentials import OPEN, Access

_Place: TypeAlias = tuple[asyncio.AbstractEventLoop, str, int, Access]
"""The event loop, the target, a number among the clients of both, and how they reach it."""
_SHARED: Final[dict[_Place, tuple[Client, int]]] = {}
"""The clients, each with the number of its users."""
CALLERS_MAX: Final = 40
"""Classic members on one shared client: each has a call that waits and makes others meanwhile,
and one connection carries 100 calls at a time."""


def acquire_shared_client(
    target: str, users_max: int | None = None, access: Access = OPEN
) -> Client:
    """The client that members of this event loop share for a target; release it once.

    Members with other credentials share another one.

    With ``users_max``, at most that many share one client, and none with callers without a limit.
    """
    for ended in [place for place in _SHARED if place[0].is_closed()]:
        del _SHARED[ended]
    number = 0
    if users_max is not None:
        number = 1
        while _SHARED.get(_place_of(target, number, access), (None, 0))[1] >= users_max:
            number += 1
    place = _place_of(target, number, access)
    client, users = _SHARED.get(place) or (_make(target, access), 0)
    _SHARED[place] = (client, users + 1)
    return client


def _make(target: str, access: Access) -> Client:
    return Client(target, tls=access.tls, credentials=access.credentials)


def _place_of(target: str, number: int, access: Access) -> _Place:
    return asyncio.get_running_loop(), target, number, access


async def release_shared_client(client: Client) -> None:
    """Give up one use of the client; the last user closes it."""
    [place] = [place for place, (shared, _) in _SHARED.items() if shared is client]
    users = _SHARED[place][1]
    if users > 1:
        _SHARED[place] = (client, users - 1)
        return
    del _SHARED[place]
    await client.close()
