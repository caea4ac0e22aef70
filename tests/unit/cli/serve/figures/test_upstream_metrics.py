"""The metrics of a server in front of a cluster."""

import time

from prometheus_client.metrics_core import Metric

from cli.serve.figures.upstream_figures import UpstreamFigures, compute_upstream_figures
from cli.serve.figures.upstream_metrics import collect_upstream
from model.places import Place
from upstream.statistics import UpstreamStatistics

Series = dict[tuple[str, tuple[str, ...]], float]


def read(figures: UpstreamFigures) -> Series:
    families: list[Metric] = list(collect_upstream(figures))
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_all_series_are_there_before_anything_happens() -> None:
    series = read(compute_upstream_figures(UpstreamStatistics(), is_reachable=False, places=()))
    assert series["muster_upstream_reachable", ()] == 0
    for place in ("taking", "muster", "returning"):
        assert series["muster_upstream_groups", (place,)] == 0
    assert series["muster_upstream_takeovers_total", ("taken",)] == 0
    assert series["muster_upstream_sentinels_lost_total", ("evicted",)] == 0
    assert series["muster_upstream_relayed_bytes_total", ("to_client",)] == 0
    assert not [name for name, _ in series if name == "muster_upstream_acl_age_seconds"]


def test_what_happened_is_counted() -> None:
    statistics = UpstreamStatistics()
    statistics.takeovers["taken"] += 2
    statistics.releases["refused"] += 1
    statistics.sentinels_lost["fenced"] += 1
    statistics.commit_batches += 2
    statistics.commits += 7
    statistics.commit_seconds.add(0.002)
    statistics.commits_unanswered_now, statistics.commits_in_flight_now = 5, 2
    statistics.relay_connections_now[2] += 5
    statistics.relay_connections_refused += 3
    statistics.relay_connections_closed["stalled"] += 1
    statistics.relay_requests_answered += 9
    statistics.relayed_bytes["to_cluster"] += 100
    statistics.requests_passed_on["CreateTopics"] += 1
    statistics.acls_mirrored_s = time.monotonic() - 4
    places = (Place.MUSTER, Place.MUSTER, Place.TAKING)
    series = read(compute_upstream_figures(statistics, is_reachable=True, places=places))
    assert series["muster_upstream_reachable", ()] == 1
    assert series["muster_upstream_groups", ("muster",)] == 2
    assert series["muster_upstream_groups", ("taking",)] == 1
    assert series["muster_upstream_takeovers_total", ("taken",)] == 2
    assert series["muster_upstream_releases_total", ("refused",)] == 1
    assert series["muster_upstream_sentinels_lost_total", ("fenced",)] == 1
    assert series["muster_upstream_commit_batches_total", ()] == 2
    assert series["muster_upstream_commits_total", ()] == 7
    assert series["muster_upstream_commit_seconds_count", ()] == 1
    assert series["muster_upstream_commits_waiting", ()] == 3
    assert series["muster_upstream_commits_in_flight", ()] == 2
    assert series["muster_upstream_relay_connections", ("2",)] == 5
    assert series["muster_upstream_relay_connections_refused_total", ()] == 3
    assert series["muster_upstream_relay_connections_closed_total", ("stalled",)] == 1
    assert series["muster_upstream_relay_requests_answered_total", ()] == 9
    assert series["muster_upstream_relayed_bytes_total", ("to_cluster",)] == 100
    assert series["muster_upstream_requests_passed_on_total", ("CreateTopics",)] == 1
    assert 4 <= series["muster_upstream_acl_age_seconds", ()] < 60


def test_figures_do_not_change_with_the_counters() -> None:
    statistics = UpstreamStatistics()
    figures = compute_upstream_figures(statistics, is_reachable=True, places=())
    before = read(figures)
    statistics.takeovers["taken"] += 1
    statistics.relay_connections_now[1] += 1
    assert read(figures) == before
