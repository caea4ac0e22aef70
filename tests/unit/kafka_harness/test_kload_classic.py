"""The load generator's classic members, and its requests that pass relays, on a real Kafka."""

import shutil
from collections.abc import Iterator

import pytest

from bench.peer import KloadError, run_kload, start_kafka
from bench.upstream.movers import Movers
from tests.kafka.broker import KafkaBroker
from tests.kafka.release import KAFKA_4_3_CLASSIC

WITHIN_S = 60.0

pytestmark = [
    pytest.mark.long,
    pytest.mark.kafka,
    pytest.mark.skipif(shutil.which("go") is None, reason="needs Go: install golang-go"),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaBroker]:
    settings = {**KAFKA_4_3_CLASSIC.settings, "offsets.topic.num.partitions": 5}
    with start_kafka(settings, assignment_interval_ms=None) as broker:
        yield broker


def test_members_commit(kafka: KafkaBroker) -> None:
    report = run_kload(
        "member-commits", kafka.bootstrap, members=20, groups=2, partitions=10, seconds=0.3
    )
    assert report["errors"] == {}
    assert report["ops"] >= 20


@pytest.mark.parametrize("kind", ["metadata", "coordinator", "offsets"])
def test_requests_that_relays_pass(kafka: KafkaBroker, kind: str) -> None:
    report = run_kload("asks", kafka.bootstrap, kind=kind, conns=2, seconds=0.3)
    assert report["errors"] == {}
    assert report["ops"] >= 2


@pytest.mark.parametrize("kind", ["produce", "fetch"])
def test_batches_of_1_mib(kafka: KafkaBroker, kind: str) -> None:
    report = run_kload("asks", kafka.bootstrap, kind=kind, conns=2, count=3)
    assert report["errors"] == {}
    assert report["ops"] == 6
    assert report["mb_per_second"] == pytest.approx(6 * 1.048576 / report["seconds"], rel=0.05)


def test_members_say_how_long_they_stood_still(kafka: KafkaBroker) -> None:
    with Movers(kafka.bootstrap, "moves", 3, timeout_s=WITHIN_S) as movers:
        joined = movers.joined
        grown = movers.add()
    assert (joined["members"], grown["members"]) == (3, 4)
    assert grown["generation"] > joined["generation"]
    assert 0 < grown["median_pause_ms"] <= grown["longest_pause_ms"]


def test_a_group_that_does_not_move_is_an_error_within_the_time(kafka: KafkaBroker) -> None:
    movers = Movers(kafka.bootstrap, "stays", 2, timeout_s=WITHIN_S)
    movers._timeout_s = 1.0
    with pytest.raises(KloadError, match=r"no report within 1 s"), movers:
        movers.wait_until_moved()


def test_movers_without_a_server_are_an_error() -> None:
    with pytest.raises(KloadError, match=r"^kload moves: dial tcp"):
        Movers("127.0.0.1:1", "g", 2, timeout_s=WITHIN_S)
