"""How many lines there are, and of what, when very much happens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.serve.audit.gathering import LEFT_OUT, WAITING_BYTES_MAX, Gathering, Repeated

NOW_S = 1_000.0


def refusal(name: str = "g") -> Repeated:
    return Repeated("refused", ("resource_name",), (name,))


def take(gathering: Gathering, now_s: float) -> list[dict[str, Any]]:
    """The lines that are due, which are written."""
    lines = gathering.take(now_s)
    gathering.written(len(lines))
    return [json.loads(line.text) for line in lines]


def test_repeated_refusals_of_a_second_are_one_line_with_their_number() -> None:
    gathering = Gathering(10)
    assert gathering.hold(NOW_S, refusal())
    for tenth in range(1, 10):
        assert not gathering.hold(NOW_S + tenth / 10, refusal())
    assert take(gathering, NOW_S + 0.99) == []
    assert gathering.compute_wait_s(NOW_S + 0.75) == 0.25
    (line,) = take(gathering, NOW_S + 1)
    assert (line["count"], line["resource_name"]) == (10, "g")
    assert line["time"] == "1970-01-01T00:16:40.000Z"
    gathering.hold(NOW_S + 1.5, refusal())
    (line,) = take(gathering, NOW_S + 2.5)
    assert "count" not in line
    assert gathering.compute_wait_s(NOW_S + 3) is None


def test_different_refusals_are_lines_of_their_own() -> None:
    gathering = Gathering(10)
    for name in "abc":
        gathering.hold(NOW_S, refusal(name))
    assert [line["resource_name"] for line in take(gathering, NOW_S + 1)] == ["a", "b", "c"]


def test_what_is_too_much_is_counted_and_told_in_one_line() -> None:
    gathering = Gathering(2)
    for number in range(100):
        gathering.hold(NOW_S, refusal(str(number)))
    assert gathering.left_out == {"refused": 98}
    told = take(gathering, NOW_S)
    assert [(line["event"], line["counts"]) for line in told] == [(LEFT_OUT, {"refused": 98})]
    assert len(take(gathering, NOW_S + 1)) == 2
    # In the next second as many lines as in the first, and no more about what was left out.
    gathering.hold(NOW_S + 1, refusal("again"))
    assert [line["event"] for line in take(gathering, NOW_S + 2)] == ["refused"]


def test_a_flood_keeps_no_other_kind_out() -> None:
    gathering = Gathering(2)
    for number in range(10_000):
        gathering.hold(NOW_S, refusal(str(number)))
    gathering.add(NOW_S, "DeleteTopic", b"{}\n")
    assert gathering.left_out == {"refused": 9_998}
    assert [line.kind for line in gathering.take(NOW_S)] == ["DeleteTopic", LEFT_OUT]


def test_memory_is_bounded_while_nothing_can_be_written() -> None:
    gathering = Gathering(10_000)
    line = b"x" * 1_000
    for second in range(10):
        for _ in range(1_000):
            gathering.add(NOW_S + second, "CreateTopic", line)
        gathering.add(NOW_S + second, "DeleteTopic", line)
        lines = gathering.take(NOW_S + second)
    assert sum(len(each.text) for each in lines) < WAITING_BYTES_MAX + 20_000
    # What does not happen often is all there.
    assert sum(each.kind == "DeleteTopic" for each in lines) == 10
    gathering.written(len(lines))
    left_out = gathering.left_out["CreateTopic"]
    assert left_out == 10_000 - WAITING_BYTES_MAX // 1_000
    told = [json.loads(each.text) for each in lines if each.kind == LEFT_OUT]
    told += take(gathering, NOW_S + 11)
    assert sum(each["counts"]["CreateTopic"] for each in told) == left_out


def test_lines_that_are_not_written_stay_in_order() -> None:
    gathering = Gathering(10)
    for name in ("a", "b", "c"):
        gathering.add(NOW_S, name, name.encode())
    gathering.written(1)
    gathering.add(NOW_S, "d", b"d")
    assert [line.text for line in gathering.take(NOW_S)] == [b"b", b"c", b"d"]


@pytest.mark.parametrize("back_s", [0.5, 3_600, 1e6])
def test_a_clock_that_is_set_back_holds_nothing_up(back_s: float) -> None:
    gathering = Gathering(1)
    gathering.hold(NOW_S * 2_000, refusal())
    gathering.hold(NOW_S * 2_000, refusal("other"))
    take(gathering, NOW_S * 2_000)
    gathering.hold(NOW_S * 2_000 + 0.5, refusal("third"))
    now_s = NOW_S * 2_000 - back_s
    assert [line["event"] for line in take(gathering, now_s)] == ["refused", LEFT_OUT]
    gathering.hold(now_s + 1.5, refusal())
    wait_s = gathering.compute_wait_s(now_s)
    assert wait_s is not None
    assert wait_s <= 1


def test_at_the_end_nothing_is_held() -> None:
    gathering = Gathering(1)
    for name in "abc":
        gathering.hold(NOW_S, refusal(name))
    take(gathering, NOW_S)
    gathering.hold(NOW_S, refusal("d"))
    assert [line.kind for line in gathering.take(NOW_S, is_end=True)] == ["refused", LEFT_OUT]
    gathering.drop_waiting()
    assert gathering.left_out == {"refused": 4}
    assert gathering.take(NOW_S + 5) == []
