"""Computes how long to park a heartbeat and which heartbeat interval to return; pure arithmetic.

Two facts about real clients shape it.

librdkafka gives a heartbeat up when the last received interval has passed since it sent it. So a
heartbeat is parked at most for that interval less a gap. The gap must exceed the round trip and
any other delay of the response: a client that is closed after giving up tears its connection down,
its leave is lost, and its partitions stay unread until its session times out.

librdkafka sends the next heartbeat when the new interval has passed since it sent the last one.
For as long as the new interval exceeds the park, the server cannot reach the member, and the
group's convergence waits for that. A resting member is unreachable for the gap only. But a member
that receives the resting interval right after a change, answered early, is unreachable for almost
all of it, and the next member to join waits. So the interval after a change is short and grows back
in steps of about the gap: a second change soon after then finds the members parked. A member that
waits for partitions in a large group gets up to twice the gap at first, and is parked when it
returns, because the current owner of its partitions may be unreachable for a gap itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.settings import GatewaySettings

WAITS_IN_A_ROUND = 20
WAIT_STEPS_IN_A_ROUND = 5
"""A round is the time in which every member heartbeats once at ``gateway.park.rate.max``. A member
that waits for partitions first gets at least 1/20 of it, then at least 1/5 more each time."""


SAFETY = 1.5
"""A network round trip of usually 200 ms sometimes takes 300 ms."""
MARGIN_MS = 20
SURPRISE_MS = 150
"""How long a disk, a garbage collection or a busy CPU may delay a response without warning."""
GAP_STEP_MS = 10
PROBE_ROOM_MS = 40
"""Parks end up to a tick early, and a probe needs its full time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Park times and heartbeat intervals for the current number of members.

    A resting member is parked for ``park_ms`` and gets ``interval_ms``. After a change a settled
    member gets ``return_ms``, which is also the step back to ``interval_ms``. A member that waits
    for partitions gets ``wait_ms``, then ``wait_step_ms`` more with every response.
    """

    park_ms: int
    interval_ms: int
    return_ms: int
    wait_ms: int
    wait_step_ms: int


def compute_pace(settings: GatewaySettings, members: int, heartbeat_interval_ms: int) -> Pace:
    """Compute the pace for ``members`` members that may be parked.

    The park grows up to ``gateway.park.max.ms`` to keep heartbeats within ``gateway.park.rate.max``
    a second; beyond that only the interval grows, up to Kafka's. Members that return after a change
    stay within the rate too: those of a large group go straight to the resting interval. Where many
    members wait for partitions at once, as when a large group forms, they heartbeat less often.
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


def compute_interval_ms(previous_ms: int, first_ms: int, step_ms: int, rest_ms: int) -> int:
    """The heartbeat interval for a member whose last one was ``previous_ms``.

    ``previous_ms`` is 0 after a change or before the first response; the result is then
    ``first_ms``. It grows by ``step_ms`` with every response without a change, up to ``rest_ms``.
    """
    if previous_ms == 0:
        return min(first_ms, rest_ms)
    return min(max(previous_ms + step_ms, first_ms), rest_ms)


def compute_gap_ms(least_ms: int, allowance_ms: float, delay_ms: float) -> int:
    """The gap for a client: how long before its interval ends it must be answered.

    ``allowance_ms`` covers the connection (``gateway.pace.round_trip``), ``delay_ms`` this process.
    The gap is at least ``least_ms``; if that is not enough, it also covers an unexpected delay. It
    is rounded up to a step, because the Java client restarts its timer whenever the interval
    changes.
    """
    needed_ms = allowance_ms * SAFETY + MARGIN_MS + delay_ms
    if needed_ms <= least_ms:
        return least_ms
    needed_ms += min(needed_ms - least_ms, SURPRISE_MS)
    return -(-int(needed_ms) // GAP_STEP_MS) * GAP_STEP_MS


def compute_longest_park_ms(pace: Pace, least_gap_ms: int, gap_ms: int) -> int:
    """How long to park a resting member's heartbeat with this gap; 0 if parking is off.

    A long gap gets a long park, so that the member is reachable at least half of the time and its
    response may carry a probe interval (``compute_probe_ms``).
    """
    if gap_ms <= least_gap_ms or not pace.park_ms:
        return pace.park_ms
    return max(pace.park_ms, gap_ms - least_gap_ms + PROBE_ROOM_MS)


def compute_rest_ms(pace: Pace, least_gap_ms: int, gap_ms: int, heartbeat_interval_ms: int) -> int:
    """The resting interval of a member with this gap."""
    park_ms = compute_longest_park_ms(pace, least_gap_ms, gap_ms)
    return min(max(pace.interval_ms, park_ms + gap_ms), heartbeat_interval_ms)


def compute_probe_ms(held_ms: float, least_gap_ms: int, gap_ms: int) -> int:
    """An interval that makes the next heartbeat measure the round trip; 0 if none does now.

    With it the client's next heartbeat is due ``least_gap_ms`` after the response is sent, so on a
    longer round trip it follows as soon as the response arrives. This is safe: the interval is at
    least ``gap_ms``, so the next heartbeat is parked for less and still has its whole gap.
    """
    interval_ms = round(held_ms) + least_gap_ms
    return interval_ms if interval_ms >= gap_ms > least_gap_ms else 0


def compute_park_ms(interval_ms: int, gap_ms: int, park_ms: int) -> int:
    """How long to park a heartbeat of a client whose last interval was this (0: unknown)."""
    return max(0, min(park_ms, interval_ms - gap_ms))
