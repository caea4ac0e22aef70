"""How long a heartbeat is parked, and which interval its answer tells: pure arithmetic.

Two facts of real clients shape it. librdkafka gives a heartbeat up when the interval that it was
last told has passed since it sent it, so a heartbeat is parked at most for that interval less a
gap, which has to be longer than the round trip and what else may delay an answer: a client that is
closed just then tears the connection down, its leave is lost, and nobody reads its partitions until
its session ends. And it sends the next one when the newly told interval has passed since then:
whatever the new interval is longer than the park, the member is out of reach, and that is what a
group's convergence waits for. A member at rest is out of reach for the gap alone. But one that is
told its interval at rest right after news, however early its heartbeat was answered, cannot be
reached for nearly all of it, and the next member to join waits. So the interval after news is
short, and grows back in steps of about the gap: a second change then meets members that are in
reach. One that waits for partitions in a large group is told twice the gap at first: it is parked
when it is back, for whoever has to give up its partitions may be out of reach for as long as a gap
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.settings import GatewaySettings

WAITS_IN_A_ROUND = 20
WAIT_STEPS_IN_A_ROUND = 5
"""Of the time that one heartbeat of every member takes at ``gateway.park.rate.max``: these parts
are the first interval of a member that waits for partitions, and its growth."""


SAFETY = 1.5
"""A way of the network that takes 200 ms mostly takes 300 ms sometimes."""
MARGIN_MS = 20
SURPRISE_MS = 150
"""A disk, a collection of garbage or a busy processor may take so long of a sudden."""
GAP_STEP_MS = 10
PROBE_ROOM_MS = 40
"""Parks end early by up to a tick, and a probe needs all of its time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What holds for members: at rest parked for ``park_ms`` and told ``interval_ms``.

    ``return_ms`` is told a settled member after news, and is the step to the rest. One that waits
    for partitions is told ``wait_ms``, and then ``wait_step_ms`` more with every answer.
    """

    park_ms: int
    interval_ms: int
    return_ms: int
    wait_ms: int
    wait_step_ms: int


def compute_pace(settings: GatewaySettings, members: int, heartbeat_interval_ms: int) -> Pace:
    """The pace at rest with ``members`` members that may be parked.

    The park stretches so that ``gateway.park.rate.max`` heartbeats a second are not exceeded, up
    to ``gateway.park.max.ms``; beyond that only the interval grows, at most to Kafka's. Nor are
    they by all members that return after news: those of a large group go straight to rest. Where
    very many wait for partitions at once, as when all of a large group join, they ask less often.
    """
    wait, gap = settings.gateway_wait_interval_ms, settings.gateway_park_gap_ms
    if settings.gateway_park_ms == 0:
        rest = heartbeat_interval_ms
        return Pace(0, rest, rest, wait, gap)
    needed = members * 1_000 // settings.gateway_park_rate_max
    park = max(settings.gateway_park_ms, min(needed - gap, settings.gateway_park_max_ms))
    interval = max(park + gap, min(needed, heartbeat_interval_ms))
    step = needed // WAIT_STEPS_IN_A_ROUND
    return Pace(
        park,
        interval,
        min(max(2 * gap, needed), interval),
        min(max(wait, min(step, 2 * gap), needed // WAITS_IN_A_ROUND), interval),
        min(max(gap, step), interval),
    )


def compute_told_ms(previous_ms: int, first_ms: int, step_ms: int, rest_ms: int) -> int:
    """The interval to tell a member that was told ``previous_ms`` before.

    0 says that there is news, or that it was told nothing yet: then it is ``first_ms``. It grows
    by ``step_ms`` with every answer without news until the member is at rest.
    """
    if previous_ms == 0:
        return min(first_ms, rest_ms)
    return min(max(previous_ms + step_ms, first_ms), rest_ms)


def compute_gap_ms(least_ms: int, allowance_ms: float, delay_ms: float) -> int:
    """The gap for a client: what is left of the interval that it was told when it is answered.

    ``allowance_ms`` is what its connection takes (``gateway.pace.round_trip``), ``delay_ms`` what
    this process does. Never less than ``least_ms``; where that is not enough a delay that nothing
    has announced is allowed for as well. In steps: Java's client begins its interval anew with each
    other one that it is told.
    """
    needed_ms = allowance_ms * SAFETY + MARGIN_MS + delay_ms
    if needed_ms <= least_ms:
        return least_ms
    needed_ms += min(needed_ms - least_ms, SURPRISE_MS)
    return -(-int(needed_ms) // GAP_STEP_MS) * GAP_STEP_MS


def compute_longest_park_ms(pace: Pace, least_gap_ms: int, gap_ms: int) -> int:
    """How long a heartbeat of a member at rest is parked whose gap this is.

    Where the gap is long so is the park: a member is in reach for half of the time at least, and
    its answer can tell a short wait (``compute_probe_ms``). 0 where parking is off.
    """
    if gap_ms <= least_gap_ms or not pace.park_ms:
        return pace.park_ms
    return max(pace.park_ms, gap_ms - least_gap_ms + PROBE_ROOM_MS)


def compute_rest_ms(pace: Pace, least_gap_ms: int, gap_ms: int, heartbeat_interval_ms: int) -> int:
    """The interval at rest of a member whose gap this is."""
    park_ms = compute_longest_park_ms(pace, least_gap_ms, gap_ms)
    return min(max(pace.interval_ms, park_ms + gap_ms), heartbeat_interval_ms)


def compute_probe_ms(held_ms: float, least_gap_ms: int, gap_ms: int) -> int:
    """The interval to tell so that the next heartbeat shows how long the way is; 0 for not now.

    The client is to send it ``least_gap_ms`` after it was answered, that is as soon as it has the
    answer where the way is longer. It is safe: the heartbeat that was held had time for the whole
    gap, and so has the next one, which is held for less.
    """
    told_ms = round(held_ms) + least_gap_ms
    return told_ms if told_ms >= gap_ms > least_gap_ms else 0


def compute_park_ms(told_ms: int, gap_ms: int, park_ms: int) -> int:
    """How long a heartbeat may be parked whose sender was last told ``told_ms`` (0: unknown)."""
    return max(0, min(park_ms, told_ms - gap_ms))
