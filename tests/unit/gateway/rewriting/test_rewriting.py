"""Responses in every version: what is to change changes, everything else stays byte for byte."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest

from gateway.codec.decoding import Cursor, compile_reader, decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import response_type
from gateway.rewriting.api_versions import OWN_OFFERS, compute_offer
from gateway.rewriting.coordinators import Asked
from gateway.rewriting.frames import Rewriting, is_rewritten, rewrite_frame
from gateway.rewriting.naming import CannotRewrite, Naming, OwnNode
from gateway.rewriting.versions import readable_versions
from model.errors import ErrorCode
from tests.support.gateway.random_entities import make_entity

ROUNDS = 60
OWN = OwnNode(2**30 + 1, "muster.example", 9092)
RELAYS = {1: ("muster.example", 19001), 2: ("m", 19002), 4: ("a-much-longer-name.example", 19004)}
HERE = {"here", ""}
REWRITING = Rewriting(Naming(RELAYS.get, OWN, HERE.__contains__), OWN_OFFERS)


def versions_of(*keys: int) -> list[tuple[int, int]]:
    return [
        (key, version)
        for key in keys
        for version in readable_versions(key)
        if is_rewritten(key, version)
    ]


def frame_of(key: int, version: int, entity: Any) -> bytes:
    response = response_type(key, version)
    tags = b"\x01\x05\x02zz" if response.__header_schema__.__flexible__ else b""
    payload = b"\x00\x00\x00\x07" + tags + encode(response, entity)
    return len(payload).to_bytes(4, "big") + payload


def rewrite(key: int, version: int, entity: Any, asked: Asked | None = None) -> Any:
    frame = rewrite_frame(key, version, frame_of(key, version, entity), REWRITING, asked)
    response = response_type(key, version)
    start = 13 if response.__header_schema__.__flexible__ else 8
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:start] == frame_of(key, version, entity)[4:start]
    cursor = Cursor(frame, start, len(frame), len(frame))
    decoded = compile_reader(response)(cursor)
    assert cursor.pos == len(frame)
    return decoded


def through_codec(key: int, version: int, entity: Any) -> Any:
    """Null and empty ids are one for the decoder."""
    response = response_type(key, version)
    data = encode(response, entity)
    return decode(response, data, 0, len(data), len(data))


def with_ids(random: Random, rows: Any, name: str) -> tuple[Any, ...]:
    return tuple(dataclasses.replace(row, **{name: random.randrange(6)}) for row in rows)


def relayed(rows: Any, name: str = "node_id") -> list[Any]:
    found = []
    for row in rows:
        if getattr(row, name) in RELAYS:
            host, port = RELAYS[getattr(row, name)]
            found.append(dataclasses.replace(row, host=host, port=port))
    return found


def is_own(row: Any, name: str = "node_id") -> bool:
    node = (getattr(row, name), row.host, row.port)
    return (
        node == (OWN.node_id, OWN.host, OWN.port)
        and getattr(row, "rack", None) is None
        and not getattr(row, "is_fenced", False)
    )


@pytest.mark.parametrize(("key", "version"), versions_of(3, 60))
def test_brokers_get_the_addresses_of_their_relays_and_muster_is_one_more(
    key: int, version: int
) -> None:
    name = "broker_id" if key == 60 else "node_id"
    for seed in range(ROUNDS):
        random = Random(seed)
        entity = make_entity(random, response_type(key, version))
        entity = dataclasses.replace(entity, brokers=with_ids(random, entity.brokers, name))
        if hasattr(entity, "endpoint_type"):
            entity = dataclasses.replace(entity, endpoint_type=1)
        given = rewrite(key, version, entity)
        *others, own = given.brokers
        assert is_own(own, name)
        expected = through_codec(key, version, entity)
        assert others == relayed(expected.brokers, name)
        assert dataclasses.replace(given, brokers=()) == dataclasses.replace(expected, brokers=())


@pytest.mark.parametrize("version", [1, 2])
def test_muster_is_no_controller(version: int) -> None:
    entity = make_entity(Random(1), response_type(60, version))
    brokers = with_ids(Random(1), entity.brokers, "broker_id")
    entity = dataclasses.replace(entity, endpoint_type=2, brokers=brokers)
    assert not any(is_own(row, "broker_id") for row in rewrite(60, version, entity).brokers)


@pytest.mark.parametrize(("key", "version"), versions_of(0, 1, 78, 79))
def test_endpoints_of_leaders_get_the_addresses_of_relays(key: int, version: int) -> None:
    seen = 0
    for seed in range(ROUNDS):
        random = Random(seed)
        entity = make_entity(random, response_type(key, version))
        nodes = with_ids(random, entity.node_endpoints, "node_id")
        entity = dataclasses.replace(entity, node_endpoints=nodes)
        expected = through_codec(key, version, entity)
        nodes = tuple(relayed(expected.node_endpoints))
        seen += len(nodes)
        assert rewrite(key, version, entity) == dataclasses.replace(expected, node_endpoints=nodes)
    assert seen


def test_versions_without_endpoints_are_not_looked_at() -> None:
    assert not is_rewritten(0, 9)
    assert not is_rewritten(1, 15)


def coordinator(random: Random, row: Any) -> Any:
    code = random.choice([0, 0, 0, ErrorCode.COORDINATOR_NOT_AVAILABLE.value, 30])
    return dataclasses.replace(row, node_id=random.randrange(6), error_code=code)


def expect_coordinator(row: Any, group_id: str | None) -> Any:
    message = {"error_message": None} if hasattr(row, "error_message") else {}
    if group_id in HERE and row.error_code != 30:
        node = {"node_id": OWN.node_id, "host": OWN.host, "port": OWN.port}
        return dataclasses.replace(row, error_code=0, **message, **node)
    if row.error_code:
        return dataclasses.replace(row, node_id=-1, host="", port=-1)
    if row.node_id not in RELAYS:
        return dataclasses.replace(row, error_code=15, node_id=-1, host="", port=-1)
    host, port = RELAYS[row.node_id]
    return dataclasses.replace(row, host=host, port=port, **message)


@pytest.mark.parametrize("key_type", [0, 1])
@pytest.mark.parametrize("version", range(4))
def test_the_coordinator_of_one_group(version: int, key_type: int) -> None:
    for seed in range(ROUNDS):
        random = Random(seed)
        entity = coordinator(random, make_entity(random, response_type(10, version)))
        group_id = random.choice(["here", "there"])
        expected = expect_coordinator(entity, None if key_type else group_id)
        assert rewrite(10, version, entity, Asked(key_type, (group_id,))) == expected


@pytest.mark.parametrize("key_type", [0, 1])
@pytest.mark.parametrize("version", [4, 5, 6])
def test_the_coordinators_of_many_groups(version: int, key_type: int) -> None:
    for seed in range(ROUNDS):
        random = Random(seed)
        entity = make_entity(random, response_type(10, version))
        rows = tuple(coordinator(random, row) for row in entity.coordinators)
        entity = dataclasses.replace(entity, coordinators=rows)
        named = tuple(expect_coordinator(row, None if key_type else row.key) for row in rows)
        asked = Asked(key_type, tuple(row.key for row in rows))
        assert rewrite(10, version, entity, asked).coordinators == named


@pytest.mark.parametrize("version", range(6))
def test_groups_that_are_here_are_left_out_of_the_cluster_s(version: int) -> None:
    for seed in range(ROUNDS):
        entity = make_entity(Random(seed), response_type(16, version))
        rows = tuple(row for row in entity.groups if row.group_id not in HERE)
        given = rewrite(16, version, entity)
        assert given == dataclasses.replace(entity, groups=rows)


def api_versions(version: int, code: int, *rows: tuple[int, int, int]) -> Any:
    response = response_type(18, version)
    entity = make_entity(Random(version), response)
    row_type = type(make_entity(Random(3), response).api_keys[0])
    keys = tuple(row_type(api_key=k, min_version=low, max_version=top) for k, low, top in rows)
    return dataclasses.replace(entity, error_code=code, api_keys=keys)


@pytest.mark.parametrize("version", range(5))
def test_only_versions_that_can_be_read_are_offered(version: int) -> None:
    rows = ((0, 0, 99), (1, 4, 15), (3, 0, 99), (55, 0, 2), (68, 0, 9), (52, 0, 1), (9999, 0, 1))
    given = rewrite(18, version, api_versions(version, 0, *rows))
    offered = [(row.api_key, row.min_version, row.max_version) for row in given.api_keys]
    assert offered == [
        (0, 3, 13), (1, 4, 15), (3, 0, 13), (55, 0, 1), (68, 0, 1), (69, 0, 1),
    ]  # fmt: skip
    expected = through_codec(18, version, api_versions(version, 0))
    assert dataclasses.replace(given, api_keys=()) == expected


def test_the_consumer_protocol_is_offered_where_muster_says() -> None:
    frame = frame_of(18, 3, api_versions(3, 0, (3, 0, 9), (68, 0, 1), (69, 0, 1)))
    given = rewrite_frame(18, 3, frame, Rewriting(REWRITING.naming, {}))
    decoded = decode(response_type(18, 3), given, 8, len(given), len(given))
    assert [row.api_key for row in decoded.api_keys] == [3]


def test_a_broker_that_does_not_know_the_version_answers_in_the_first() -> None:
    frame = frame_of(18, 0, api_versions(0, 35, (18, 0, 2)))
    assert rewrite_frame(18, 4, frame, REWRITING) == frame


def test_an_api_without_a_common_version_is_not_offered() -> None:
    assert not compute_offer(1, range(3))


@pytest.mark.parametrize("key", [0, 1, 3, 10, 16, 18, 60, 78, 79])
def test_a_version_newer_than_known_is_refused(key: int) -> None:
    version = readable_versions(key).stop
    assert is_rewritten(key, version)
    with pytest.raises(CannotRewrite):
        rewrite_frame(key, version, bytes(64), REWRITING, Asked(0, ("g",)))


@pytest.mark.parametrize(("key", "version"), versions_of(0, 1, 3, 10, 16, 18, 60, 78, 79))
def test_a_damaged_response_is_refused_or_read_but_never_crashes(key: int, version: int) -> None:
    for seed in range(ROUNDS):
        random = Random(seed)
        frame = bytearray(frame_of(key, version, make_entity(random, response_type(key, version))))
        for _ in range(3):
            frame[random.randrange(8, len(frame))] = random.randrange(256)
        del frame[random.randrange(8, len(frame) + 1) :]
        try:
            rewrite_frame(key, version, bytes(frame), REWRITING, Asked(0, ("g",)))
        except CannotRewrite:
            continue
