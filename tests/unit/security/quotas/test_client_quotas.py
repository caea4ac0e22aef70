"""What clients use of their quotas: shared by those of one user, bounded however many there are."""

from __future__ import annotations

import pytest

from model.access.quotas import DEFAULT_NAME, QuotaEntity
from model.caller import Caller
from security.quotas import client_quotas
from security.quotas.client_quotas import ClientQuotas, Work

NOW = 1_000.0


def caller(user: str = "a", client_id: str = "c", host: str = "/10.0.0.1") -> Caller:
    return Caller(f"User:{user}", client_id, host)


def use_up(quotas: ClientQuotas, who: Caller, work: Work = Work.REQUEST, times: int = 10) -> None:
    meter = quotas.find_meter(who, NOW)
    assert [meter.note(work, NOW) for _ in range(times)][-1] == 0.0
    assert quotas.find_meter(who, NOW).note(work, NOW) > 0.0


@pytest.mark.parametrize("key", ["request_rate", "commit_rate", "join_rate"])
def test_each_rate_counts_what_it_names(key: str) -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("a"), {key: 1.0})
    works = {"request_rate": Work.REQUEST, "commit_rate": Work.COMMIT, "join_rate": Work.JOIN}
    use_up(quotas, caller(), works[key])
    others = set(Work) - {works[key]} if key != "request_rate" else set()
    meter = quotas.find_meter(caller(), NOW)
    for other in others:
        assert meter.note(other, NOW) == 0.0
    if key == "request_rate":
        assert meter.note(Work.COMMIT, NOW) > 0.0, "a commit is a request too"


def test_clients_of_one_user_share_its_quota_and_others_have_their_own() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity(DEFAULT_NAME), {"request_rate": 1.0})
    use_up(quotas, caller(client_id="c"))
    assert quotas.find_meter(caller(client_id="d"), NOW).note(Work.REQUEST, NOW) > 0.0
    assert quotas.find_meter(caller("b"), NOW).note(Work.REQUEST, NOW) == 0.0


def test_an_address_is_limited_whoever_its_clients_are() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity(ip="10.0.0.1"), {"request_rate": 1.0})
    use_up(quotas, caller("a"))
    assert quotas.find_meter(caller("b"), NOW).note(Work.REQUEST, NOW) > 0.0
    elsewhere = caller("a", host="/10.0.0.2")
    assert quotas.find_meter(elsewhere, NOW).note(Work.REQUEST, NOW) == 0.0


def test_time_is_a_share_of_one_thread() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("a"), {"request_percentage": 50.0})
    meter = quotas.find_meter(caller(), NOW)
    assert meter.has_rates
    assert meter.note_time(NOW, 5.0) == 0.0
    assert meter.note_time(NOW, 0.25) == pytest.approx(0.5)
    assert meter.note(Work.REQUEST, NOW) == pytest.approx(0.5), "also before more time is used"


def test_a_client_without_limits_is_not_measured() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("b"), {"request_rate": 1.0})
    assert quotas.is_active
    assert not quotas.find_meter(caller("a"), NOW).has_rates
    assert len(quotas._kept) == 0


def test_what_has_to_wait_is_not_noted() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("a"), {"commit_rate": 1.0})
    meter = quotas.find_meter(caller(), NOW)
    for _ in range(10):
        assert meter.compute_wait_s(Work.COMMIT, NOW) == 0.0
        meter.note(Work.COMMIT, NOW)
    for _ in range(100):
        assert meter.compute_wait_s(Work.COMMIT, NOW) == pytest.approx(1.0)


def test_rates_that_are_idle_go_and_there_are_never_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_quotas, "USAGES_MAX", 100)
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity(client_id=DEFAULT_NAME), {"request_rate": 1.0})
    for number in range(1_000):
        meter = quotas.find_meter(caller(client_id=f"flood-{number}"), NOW)
        meter.note(Work.REQUEST, NOW)
        assert len(quotas._kept) <= 100
    for number in range(60):
        quotas.find_meter(caller(client_id=f"later-{number}"), NOW + 60)
    assert len(quotas._kept) < 100


def test_all_meters_of_a_user_share_what_it_uses_however_long_one_was_idle() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity(DEFAULT_NAME), {"request_rate": 1.0, "join_rate": 1.0})
    long_lived = quotas.find_meter(caller(), NOW)
    later = NOW + 100_000
    for number in range(100):
        quotas.find_meter(caller(f"another-{number}"), later)
    for _ in range(11):
        throttle_s = long_lived.note(Work.REQUEST, later)
    assert throttle_s == pytest.approx(1.0)
    assert quotas.find_meter(caller(), later).note(Work.REQUEST, later) > 0.0
    del long_lived
    for number in range(100):
        quotas.find_meter(caller(f"more-{number}"), later)
    assert quotas.find_meter(caller(), later).note(Work.REQUEST, later) > 0.0


def test_a_quota_that_is_only_looked_at_is_not_forgotten_at_once() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("a"), {"request_rate": 1.0, "join_rate": 1_000.0})
    found = [quotas.find_meter(caller(), NOW).note(Work.REQUEST, NOW) for _ in range(12)]
    assert found[:10] == [0.0] * 10
    assert found[11] > 0.0


def test_a_name_of_32_kb_is_not_kept() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity(client_id=DEFAULT_NAME), {"request_rate": 1.0})
    name = "c" * 32_767
    use_up(quotas, caller(client_id=name))
    assert quotas.find_meter(caller(client_id=name + "d"), NOW).note(Work.REQUEST, NOW) == 0.0
    assert all(len(who.client_id or "") < 200 for _, who in quotas._kept)


def test_a_corrected_quota_frees_whoever_was_given_too_little() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("a"), {"request_rate": 0.001})
    assert quotas.find_meter(caller(), NOW).note(Work.REQUEST, NOW) > 0.0
    quotas.index.put(QuotaEntity("a"), {"request_rate": 100.0})
    assert quotas.find_meter(caller(), NOW).note(Work.REQUEST, NOW) == 0.0
