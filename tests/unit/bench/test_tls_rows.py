"""The rows of the TLS scenario from reports of kload."""

from __future__ import annotations

import pytest

from bench.figures import Json, Row
from bench.reasons import find_reason
from bench.scenarios.tls import KAFKA, LOADS, MUSTER, PLAIN, TLS, find_cipher, make_rows, name_run
from bench.stand import BadRun

_CPU = {(KAFKA, PLAIN): 40.0, (KAFKA, TLS): 70.0, (MUSTER, PLAIN): 15.0, (MUSTER, TLS): 25.0}


def make_runs(cipher_of_muster: str = "TLS 1.3 A") -> dict[str, list[Json]]:
    return {
        name_run(side, protocol, load): [
            {
                "rate": 1e6 / cpu,
                "server_cpu_us_per_op": cpu,
                "latency_ms": {"p50": 1.0, "p99": 2.0},
                "tls": ""
                if protocol == PLAIN
                else "TLS 1.3 A"
                if side == KAFKA
                else cipher_of_muster,
            }
        ]
        for (side, protocol), cpu in _CPU.items()
        for load in LOADS
    }


def find(what: str) -> Row:
    (row,) = (row for row in make_rows(make_runs()) if row.what == what)
    return row


def test_heartbeats_over_tls_have_a_goal_and_it_counts_those_over_tls() -> None:
    row = find("TLS: heartbeats: rate")
    assert row.ratio == pytest.approx(70 / 25)
    assert row.is_reached
    assert find("plain: heartbeats: rate").target is None


def test_a_handshake_costs_what_a_connection_costs_more() -> None:
    row = find("a full handshake: server CPU on top")
    assert row.kafka == (pytest.approx(30.0),)
    assert row.muster == (pytest.approx(10.0),)


def test_rows_are_of_the_same_cipher_on_both_sides() -> None:
    assert find_cipher(make_runs()) == "TLS 1.3 A"
    with pytest.raises(BadRun, match=r"Kafka: TLS 1\.3 A; Muster: TLS 1\.3 B"):
        find_cipher(make_runs("TLS 1.3 B"))


@pytest.mark.parametrize("listener", ["TLS", "plain"])
def test_a_reason_holds_for_both_listeners(listener: str) -> None:
    what = "commits of 1 partition: rate"
    assert find_reason(f"{listener}: {what}") == find_reason(what) is not None


def test_tls_has_a_reason_of_its_own_where_it_costs() -> None:
    assert "OpenSSL" in str(find_reason("TLS: heartbeats: rate"))
    assert "OpenSSL" not in str(find_reason("plain: heartbeats: rate"))
