"""What TLS costs: heartbeats, commits and new connections with it, and without it beside them."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from bench.figures import Json, Row, Section, Target, pick
from bench.scenarios.rates import CONNS, TOPIC_PARTITIONS, make_rate_rows
from bench.secured import CERTIFICATE, Secured, make_keys, serve_kafka, serve_muster
from bench.stand import BadRun, Server, Stand

NEW_CONNS = 16
"""Connections that are being opened at a time."""

HEARTBEATS, COMMITS, CONNECTS = "heartbeats", "commits of 1 partition", "new connections"
LOADS = (HEARTBEATS, COMMITS, CONNECTS)
KAFKA, MUSTER = "Kafka", "Muster"
PLAIN, TLS = "plain", "TLS"

_CPU = "server_cpu_us_per_op"


def measure_tls(stand: Stand) -> Section:
    """Heartbeats, commits and new connections over TLS, and the same without it."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        keys = make_keys(Path(folder))
        stand.note("starting Kafka and Muster with TLS, and warming them up")
        with serve_kafka(keys) as kafka, serve_muster(keys) as muster:
            runs = measure_both(stand, kafka, muster)
    cipher = find_cipher(runs)
    return Section(
        name="tls",
        title="TLS",
        method=(
            "Kafka and Muster with two listeners each, one of them with TLS; the rows with and "
            f"without TLS are of the same two servers, in turns. {cipher}, X25519, a certificate "
            f"with a key of {CERTIFICATE}, PEM, no certificate of the client; the same on both "
            "sides. Heartbeats and commits are those of the scenarios above. New connections: "
            f"{NEW_CONNS} at a time, each connects, makes a full handshake (no session is "
            "resumed), asks ApiVersions and closes. The cost of a handshake is the CPU of such a "
            "connection, less that of one without TLS."
        ),
        rows=make_rows(runs),
        runs=runs,
    )


def measure_both(stand: Stand, kafka: Secured, muster: Secured) -> dict[str, list[Json]]:
    """All loads on all four addresses, by `name_run`."""
    return stand.interleave(
        {
            name_run(side, protocol, load): partial(run, stand, server, load)
            for load in LOADS
            for protocol in (PLAIN, TLS)
            for side, both in ((KAFKA, kafka), (MUSTER, muster))
            for server in (both.tls if protocol == TLS else both.plain,)
        }
    )


def name_run(side: str, protocol: str, load: str) -> str:
    return f"{side}, {protocol}, {load}"


def run(stand: Stand, server: Server, load: str) -> Json:
    """One load on one address."""
    plan = stand.plan
    times = {"seconds": plan.tls_s, "warm_up": plan.tls_warm_up_s}
    match load:
        case "heartbeats":
            return stand.run_kload(
                server, "heartbeats", partitions=TOPIC_PARTITIONS, conns=CONNS, **times
            )
        case "commits of 1 partition":
            return stand.run_kload(
                server, "commits", partitions=1, groups=CONNS, conns=CONNS, **times
            )
        case _:
            return stand.run_kload(server, "connects", conns=NEW_CONNS, **times)


def find_cipher(runs: dict[str, list[Json]]) -> str:
    """Protocol and cipher suite of all runs over TLS. Raises BadRun if they are not the same."""
    found = {
        side: {str(report["tls"]) for load in LOADS for report in runs[name_run(side, TLS, load)]}
        for side in (KAFKA, MUSTER)
    }
    if found[KAFKA] != found[MUSTER] or len(found[KAFKA]) != 1:
        named = "; ".join(f"{side}: {', '.join(sorted(used))}" for side, used in found.items())
        raise BadRun(f"not the same TLS on both sides: {named}")
    return found[KAFKA].pop()


def make_rows(runs: dict[str, list[Json]]) -> tuple[Row, ...]:
    rows: list[Row] = []
    for load in LOADS:
        plain, tls = (pick_sides(runs, protocol, load) for protocol in (PLAIN, TLS))
        goal = Target(min_ratio=1.5) if load == HEARTBEATS else None
        rows += make_rate_rows(f"TLS: {load}", tls, rate=goal)
        rows += make_rate_rows(f"plain: {load}", plain)[:2]
        rows.append(make_price_row(load, plain, tls))
    return tuple(rows)


def pick_sides(runs: dict[str, list[Json]], protocol: str, load: str) -> dict[str, list[Json]]:
    return {side: runs[name_run(side, protocol, load)] for side in (KAFKA, MUSTER)}


def make_price_row(load: str, plain: dict[str, list[Json]], tls: dict[str, list[Json]]) -> Row:
    """What TLS adds to the CPU of one operation, run by run; for a connection, its handshake."""
    what = "a full handshake" if load == CONNECTS else f"TLS of {load}"

    def compute(side: str) -> tuple[float, ...]:
        pairs = zip(pick(tls[side], _CPU), pick(plain[side], _CPU), strict=False)
        return tuple(max(0.0, with_tls - without) for with_tls, without in pairs)

    return Row(f"{what}: server CPU on top", "µs", compute(KAFKA), compute(MUSTER))
