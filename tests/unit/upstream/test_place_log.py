"""The log lines of groups that change their place."""

from structlog.testing import capture_logs

from model.ids import GroupId
from model.places import Place
from upstream.place_log import (
    log_place_changed,
    log_sentinel_joined,
    log_sentinel_lost,
    log_takeover_put_off,
)

G = GroupId("billing")


def test_a_change_of_place_is_one_line() -> None:
    with capture_logs() as lines:
        log_place_changed(G, Place.UPSTREAM, Place.TAKING, "asked for by an operator")
    assert lines == [
        {
            "event": "group_place_changed",
            "log_level": "info",
            "group": "billing",
            "from": "upstream",
            "to": "taking",
            "cause": "asked for by an operator",
        }
    ]


def test_only_some_of_very_many_strangers_are_named() -> None:
    with capture_logs() as lines:
        log_takeover_put_off(G, "strangers", [f"c{number} /10.0.0.1" for number in range(1_000)])
        log_takeover_put_off(G, "the cluster refused")
    assert len(lines[0]["strangers"]) == 5
    assert lines[0]["strangers_left_out"] == 995
    assert (lines[1]["strangers"], lines[1]["strangers_left_out"]) == ([], 0)


def test_the_sentinel_is_told_of_and_its_loss_is_a_warning() -> None:
    with capture_logs() as lines:
        log_sentinel_joined(G, "muster-1", 7)
        log_sentinel_lost(G, "evicted")
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("sentinel_joined", "info"),
        ("sentinel_lost", "warning"),
    ]
