"""Which quota is in force for a client: the precedence of Kafka's ``DefaultQuotaCallback``."""

from __future__ import annotations

import pytest

from model.access.quotas import DEFAULT_NAME, QuotaEntity
from security.quotas.addresses import find_address, parse_address
from security.quotas.quota_index import Limit, QuotaIndex

ALL = DEFAULT_NAME
RANKED = [
    (QuotaEntity("u", "c"), QuotaEntity("u", "c")),
    (QuotaEntity("u", ALL), QuotaEntity("u", "c")),
    (QuotaEntity("u"), QuotaEntity("u")),
    (QuotaEntity(ALL, "c"), QuotaEntity("u", "c")),
    (QuotaEntity(ALL, ALL), QuotaEntity("u", "c")),
    (QuotaEntity(ALL), QuotaEntity("u")),
    (QuotaEntity(client_id="c"), QuotaEntity(client_id="c")),
    (QuotaEntity(client_id=ALL), QuotaEntity(client_id="c")),
]
"""The entities of client c of user u, the first that decides first; and who shares each quota."""


def test_the_first_entity_with_a_quota_decides_and_says_who_shares_it() -> None:
    index = QuotaIndex()
    for number, (entity, _) in enumerate(RANKED):
        index.put(entity, {"commit_rate": 10.0 + number})
    for number, (entity, who) in enumerate(RANKED):
        found = index.find_of_client("u", "c")
        assert found == {"commit_rate": Limit(10.0 + number, who)}
        index.discard(entity)
    assert index.find_of_client("u", "c") == {}


def test_each_quota_is_looked_for_on_its_own() -> None:
    index = QuotaIndex()
    index.put(QuotaEntity("u"), {"request_rate": 1.0})
    index.put(QuotaEntity(client_id="c"), {"request_rate": 2.0, "commit_rate": 3.0})
    found = index.find_of_client("u", "c")
    assert {key: limit.value for key, limit in found.items()} == {
        "request_rate": 1.0,
        "commit_rate": 3.0,
    }
    assert index.find_of_client("v", "d") == {}


def test_a_client_of_the_default_has_the_quota_for_itself() -> None:
    index = QuotaIndex()
    index.put(QuotaEntity(ALL), {"request_rate": 1.0})
    whose = {index.find_of_client(user, "c")["request_rate"].who for user in ("u", "v")}
    assert whose == {QuotaEntity("u"), QuotaEntity("v")}


def test_an_address_has_its_own_quota_or_shares_that_of_its_network() -> None:
    index = QuotaIndex()
    index.put(QuotaEntity(ip=ALL), {"connection_creation_rate": 5.0, "request_rate": 7.0})
    index.put(QuotaEntity(ip="10.0.0.1"), {"connection_creation_rate": 9.0})
    found = index.find_of_address("10.0.0.1", "10.0.0.1")
    assert found["connection_creation_rate"].value == 9.0
    assert found["request_rate"].value == 7.0
    one, other = (parse_address(text) for text in ("2001:db8::1", "2001:db8::ffff:1"))
    assert index.find_of_address(*one) == index.find_of_address(*other)
    elsewhere = parse_address("2001:db8:0:1::1")
    assert index.find_of_address(*elsewhere) != index.find_of_address(*one)


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("/127.0.0.1", "127.0.0.1"),
        ("/0:0:0:0:0:0:0:1", "::1"),
        ("/::ffff:10.0.0.1", "10.0.0.1"),
        ("/fe80:0:0:0:0:0:0:1%eth0", "fe80::1"),
    ],
)
def test_a_host_as_java_prints_it_is_an_address(host: str, text: str) -> None:
    assert find_address(host).text == text


def test_the_version_grows_with_each_change_and_quotas_of_connections_are_not_looked_at() -> None:
    index = QuotaIndex()
    assert not index.is_looked_at
    index.put(QuotaEntity(ip="10.0.0.1"), {"connection_creation_rate": 9.0})
    assert not index.is_looked_at
    before = index.version
    index.put(QuotaEntity("u"), {"request_percentage": 50.0})
    assert index.is_looked_at
    assert index.version > before
    before = index.version
    index.discard(QuotaEntity("u"))
    assert not index.is_looked_at
    assert index.version > before
    assert [entity for entity, _ in index] == [QuotaEntity(ip="10.0.0.1")]
