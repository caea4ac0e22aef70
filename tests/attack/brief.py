"""The attacks on TLS and SASL one after the other, each for a moment: what CI has time for."""

from __future__ import annotations

import asyncio

from tests.attack.crowds import (
    GROUP_SIZE,
    PER_ADDRESS,
    crowd,
    flood_joins,
    join_frames,
    limit_groups,
)
from tests.attack.flood import Flood
from tests.attack.handshakes import hold_half_open
from tests.attack.lines import make_client_hello
from tests.attack.logins import ask_unknown, guess_for, pour_tokens
from tests.attack.secure_client import make_context
from tests.attack.stand import Attack, Target

_HALF_OPEN = 500
_GUESSERS = 20
_JOINS = 300


def attack_briefly(target: Target, strength: int) -> None:
    """Half-open handshakes stay while the others come and go."""
    hello = make_client_hello(make_context(target.security))
    with Flood(target.kafka) as flood:
        hold_half_open(flood, hello, _HALF_OPEN * strength)
        asyncio.run(_log_in_badly(target, strength))
    limit_groups(target)
    for frames in (join_frames(_JOINS * strength, "crowd"), join_frames(_JOINS * strength)):
        asyncio.run(flood_joins(target, frames))
    crowd(target, 5 * strength)


async def _log_in_badly(target: Target, strength: int) -> None:
    await guess_for(target, _GUESSERS, 1.0 * strength)
    await pour_tokens(target, strength)
    await ask_unknown(target, 3 * strength)


ATTACKS = (
    Attack(
        "TLS and SASL, briefly",
        attack_briefly,
        peak_bytes=96 << 20,
        protocol="SASL_SSL",
        settings={"group.consumer.max.size": GROUP_SIZE, "max.connections.per.ip": PER_ADDRESS},
    ),
)
