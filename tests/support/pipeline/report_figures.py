"""Figures of an invented cluster: 10,000 groups, with names that are difficult on a page."""

from __future__ import annotations

import random

from pipeline.report.figures import (
    AuditFigures,
    BusyGroup,
    Convergence,
    ExpiringGroup,
    ExpiryFigures,
    Finding,
    GroupDetails,
    JudgedGroup,
    LagFigures,
    LaggingGroup,
    Lane,
    Lanes,
    LogFacts,
    Member,
    OneRebalance,
    Ranking,
    ReadinessFigures,
    RebalanceSeries,
    Report,
    Stay,
)

DAY_MS = 86_400_000
HOUR_MS = DAY_MS // 24
START_MS = 1_795_000_000_000 // DAY_MS * DAY_MS
WINDOWS = 60
WINDOW_MS = DAY_MS // 2
END_MS = START_MS + WINDOWS * WINDOW_MS
GROUPS = 10_000
TOP = 20

HOSTILE = "<script>alert('x')</script>&amp;\"\x00\u202egnp.exe\ud800"
LONG = "a.group.with.a.name.that.has.no.end." * 7
RIGHT_TO_LEFT = "مجموعة-المستهلكين"
NAMES = (HOSTILE, LONG, RIGHT_TO_LEFT, "", "payments 🙂")


def make_report() -> Report:
    chance = random.Random(7)
    names = [*NAMES, *(f"group-{number:05}" for number in range(TOP - len(NAMES)))]
    causes = ("member_joined", "member_left", "topics_changed", "not_in_the_records")
    by_cause = {cause: [chance.randrange(200) for _ in range(WINDOWS)] for cause in causes}
    total = sum(map(sum, by_cause.values()))
    busy = [_make_busy(name, 600 - 20 * place) for place, name in enumerate(names)]
    shown = sum(group.rebalances for group in busy)
    ranking = Ranking(busy, GROUPS - TOP, total - shown)
    p50 = [None if number == 9 else chance.randrange(3_000, 9_000) for number in range(WINDOWS)]
    return Report(
        LogFacts(
            "/var/lib/kafka/<b>",
            START_MS,
            END_MS,
            50_000_000,
            49_000_000,
            {"consumer": 8_000, "classic": 1_500, "of offsets alone": 500},
            {"truncated": 3},
        ),
        RebalanceSeries(START_MS, WINDOW_MS, by_cause),
        Convergence(
            [10.0 ** (number / 5) for number in range(31)],
            [chance.randrange(1_000) for _ in range(30)],
            {"p50": 4_200, "p95": 31_000, "p99": 64_000, "max": 990_000},
            START_MS,
            WINDOW_MS,
            p50,
            [None if value is None else value * chance.randrange(2, 90) for value in p50],
            17,
            412,
        ),
        ranking,
        ranking,
        [make_lanes(name) for name in names[:2]],
        LagFigures(
            START_MS,
            WINDOW_MS,
            [_make_lagging(name, chance) for name in names],
            GROUPS - TOP,
            123_456_789,
            {"OK": 60_000, "FALLING_BEHIND": 12},
            9,
        ),
        ExpiryFigures(
            END_MS,
            7 * DAY_MS,
            3 * HOUR_MS,
            [chance.randrange(90) for _ in range(56)],
            4,
            55,
            160_000,
            [
                ExpiringGroup(name, 32, 2, END_MS + HOUR_MS, END_MS + DAY_MS, "no members")
                for name in names
            ],
            381,
            9_000,
        ),
        [_make_details(name) for name in names],
        _make_readiness(names),
        AuditFigures(
            {"S1": 2, "truncated": 3},
            [Finding("S1", name, 7, 127, "two members own <b>it</b>") for name in names[:5]],
            12,
            2,
        ),
    )


def _make_readiness(names: list[str]) -> ReadinessFigures:
    blocked = [
        JudgedGroup(name, "BLOCKED", 3, ["it is <b>blocked</b>"], ["worker-1", HOSTILE])
        for name in names
    ]
    return ReadinessFigures({"READY": 900, "WARN": 400, "BLOCKED": 200}, blocked, 580)


def _make_details(name: str) -> GroupDetails:
    """30 rebalances, some of which did not converge or are not timed."""
    rebalances = [
        OneRebalance(
            END_MS - number * HOUR_MS,
            60 - number,
            61 - number,
            ("member_joined", "member_left", "not_in_the_records")[number % 3],
            Member(f"member-{number:02}", HOSTILE) if number % 3 < 2 else None,
            2,
            9,
            [f"orders-{place}" for place in range(6)],
            None if number % 5 == 0 else 4_200,
            number % 10 != 0,
        )
        for number in range(30)
    ]
    return GroupDetails(name, "consumer", rebalances, 570)


def make_lanes(name: str) -> Lanes:
    """24 partitions that pass from one of 30 members to the next."""
    members = [
        Member(f"member-{number:02}", "worker" if number % 2 else f"<i>{number}</i>")
        for number in range(30)
    ]
    lanes = []
    for partition in range(24):
        edges = [START_MS + DAY_MS * (partition % 5), *range(START_MS + 6 * DAY_MS, END_MS, DAY_MS)]
        stays = [
            Stay((partition + number) % 30, number + 1, first, last)
            for number, (first, last) in enumerate(zip(edges, [*edges[1:], None], strict=True))
        ]
        lanes.append(Lane("orders.placed.in.a.country.v2", partition, stays))
    times = list(range(START_MS + 6 * DAY_MS, END_MS, DAY_MS))
    return Lanes(name, START_MS, END_MS, members, lanes, times, 76, 1_000)


def _make_busy(name: str, rebalances: int) -> BusyGroup:
    return BusyGroup(
        name,
        "consumer",
        rebalances,
        3,
        42_000,
        990_000,
        9_000_000,
        12_345,
        {"member_joined": rebalances // 2, "member_left": rebalances - rebalances // 2},
        Member("m", HOSTILE),
        rebalances // 2,
        [rebalances // 30] * 30,
    )


def _make_lagging(name: str, chance: random.Random) -> LaggingGroup:
    lags = [None, *(chance.randrange(10**8) for _ in range(WINDOWS - 1))]
    return LaggingGroup(name, 5_000_000, 432.1, 10**8, 32, {"OK": 31, "STALLED": 1}, lags)
