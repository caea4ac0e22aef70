"""FindCoordinator in front of a cluster: by the place of each group."""

from __future__ import annotations

from typing import Any

import pytest

from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from model.places import Place
from tests.support.authorizers import Rights
from tests.support.gateway.scripted_front import OWN_ID, Passed, ScriptedFront
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.waiting import until

KEY = 10
BATCHED = range(4, 7)
SINGLE = range(4)
RELAY = (1, "relay-1", 9001, 0)


def answer(asked: Passed, **row: Any) -> dict[str, Any]:
    """Broker 1 coordinates everything."""
    assert asked.key == KEY
    fields = {"node_id": 1, "host": "real", "port": 9092, "error_code": 0, **row}
    if asked.version in SINGLE:
        return fields
    return {
        "coordinators": [{"key": key, **fields} for key in asked.request.coordinator_keys],
    }


async def find(
    rig: Rig, keys: list[str], version: int = 6, key_type: int = 0
) -> dict[str, tuple[int, str, int, int]]:
    async with await rig.connect() as connection:
        if version in SINGLE:
            (key,) = keys
            fields = {} if version == 0 else {"key_type": key_type}
            row = await connection.ask(KEY, version, key=key, **fields)
            return {key: (row.node_id, row.host, row.port, row.error_code)}
        response = await connection.ask(KEY, version, key_type=key_type, coordinator_keys=keys)
    rows = response.coordinators
    assert [row.key for row in rows] == keys
    return {row.key: (row.node_id, row.host, row.port, row.error_code) for row in rows}


@pytest.mark.parametrize("version", [*SINGLE, *BATCHED])
@pytest.mark.parametrize(
    ("place", "is_own"),
    [
        (Place.MUSTER, True),
        (Place.TAKING, True),
        (Place.RETURNING, False),
        (Place.UPSTREAM, False),
    ],
)
async def test_the_place_of_a_group_says_who_is_named(
    version: int, place: Place, is_own: bool
) -> None:
    front = ScriptedFront(answer)
    front.places["g"] = place
    async with run_rig(front=front) as rig:
        found = await find(rig, ["g"], version)
        own = (OWN_ID, "127.0.0.1", rig.port, 0)
    assert found == {"g": own if is_own else RELAY}
    assert len(front.asked) == (0 if is_own else 1)


@pytest.mark.parametrize("version", BATCHED)
async def test_keys_of_both_sorts_keep_their_order_and_the_cluster_hears_of_its_own_alone(
    version: int,
) -> None:
    front = ScriptedFront(answer)
    front.places = {"b": Place.MUSTER, "d": Place.TAKING}
    async with run_rig(front=front) as rig:
        found = await find(rig, ["a", "b", "c", "d"], version)
        own = (OWN_ID, "127.0.0.1", rig.port, 0)
    assert found == {"a": RELAY, "b": own, "c": RELAY, "d": own}
    (asked,) = front.asked
    assert asked.request.coordinator_keys == ("a", "c")
    assert (asked.version, asked.client_id) == (version, "c")


async def test_transactional_ids_are_the_clusters_whatever_group_has_the_name() -> None:
    front = ScriptedFront(answer)
    front.places["t"] = Place.MUSTER
    async with run_rig(front=front) as rig:
        assert await find(rig, ["t"], key_type=1) == {"t": RELAY}
    assert front.asked[0].request.key_type == 1


async def test_a_group_that_is_to_be_taken_is_asked_for_and_still_upstream() -> None:
    front = ScriptedFront(answer)
    front.matching = {"g", "here"}
    front.places["here"] = Place.MUSTER
    async with run_rig(front=front) as rig:
        found = await find(rig, ["g", "other"])
        await find(rig, ["here"])
    assert found == {"g": RELAY, "other": RELAY}
    assert front.takes == ["g"]


async def test_a_group_of_another_muster_is_there() -> None:
    front = ScriptedFront(answer)
    front.others["g"] = (OWN_ID + 1, "muster-2", 9092)
    front.matching = {"g"}
    async with run_rig(front=front) as rig:
        assert await find(rig, ["g"]) == {"g": (OWN_ID + 1, "muster-2", 9092, 0)}
    assert front.takes == []
    assert front.asked == []


async def test_rights_are_checked_by_who_answers() -> None:
    front = ScriptedFront(answer)
    front.places["here"] = Place.MUSTER
    front.matching = {"to-take"}
    front.others["other"] = (OWN_ID + 1, "muster-2", 9092)
    names = ["here", "to-take", "other", "theirs"]
    rights = Rights(*((Operation.DESCRIBE, ResourceType.GROUP, name) for name in names))
    async with run_rig(front=front, authorizer=rights) as rig:
        found = await find(rig, names)
    refused = (-1, "", -1, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert found == {"here": refused, "to-take": refused, "other": refused, "theirs": RELAY}
    assert front.takes == []


async def test_who_may_only_describe_a_group_has_it_not_taken() -> None:
    front = ScriptedFront(answer)
    front.matching = {"g"}
    rights = Rights((Operation.READ, ResourceType.GROUP, "g"))
    async with run_rig(front=front, authorizer=rights) as rig:
        assert await find(rig, ["g"]) == {"g": RELAY}
    assert front.takes == []


@pytest.mark.parametrize("version", [3, 6])
async def test_an_error_of_the_cluster_reaches_the_client(version: int) -> None:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    front = ScriptedFront(
        lambda asked: answer(asked, error_code=int(code), node_id=-1, host="", port=-1)
    )
    async with run_rig(front=front) as rig:
        assert await find(rig, ["g"], version) == {"g": (-1, "", -1, code)}


@pytest.mark.parametrize("version", [3, 6])
async def test_a_broker_without_a_relay_is_not_named(version: int) -> None:
    front = ScriptedFront(answer)
    front.relays = {}
    async with run_rig(front=front) as rig:
        found = await find(rig, ["g"], version)
    assert found == {"g": (-1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)}


@pytest.mark.parametrize("version", [0, 3, 6])
async def test_without_the_cluster_groups_here_are_found_and_others_asked_for_again(
    version: int,
) -> None:
    front = ScriptedFront(answer)
    front.is_reachable = False
    front.places["here"] = Place.MUSTER
    async with run_rig(front=front) as rig:
        own = (OWN_ID, "127.0.0.1", rig.port, 0)
        lost = (-1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert await find(rig, ["here"], version) == {"here": own}
        assert await find(rig, ["g"], version) == {"g": lost}
        if version in BATCHED:
            assert await find(rig, ["g", "here"], version) == {"g": lost, "here": own}


async def test_a_client_whose_login_has_ended_at_the_cluster_has_to_log_in_again() -> None:
    front = ScriptedFront(answer)
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        await connection.ask(KEY, 6, coordinator_keys=["g"])
        assert rig.server._shared is not None
        served: Any
        (served,) = rig.server._shared.connections
        served.passed = front.links[0]
        front.links[0].put(None)
        await until(lambda: front.links[0].is_closed)
        connection.send(KEY, 6, coordinator_keys=["g"])
        assert await connection.is_closed()
    assert len(front.asked) == 1


async def test_a_key_that_the_cluster_does_not_answer_is_asked_for_again() -> None:
    front = ScriptedFront(lambda asked: {"coordinators": []})
    async with run_rig(front=front) as rig:
        found = await find(rig, ["g"])
    assert found == {"g": (-1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)}


async def test_many_keys_in_one_request() -> None:
    front = ScriptedFront(answer)
    keys = [f"group-{number}" for number in range(20_000)]
    front.places = dict.fromkeys(keys[::2], Place.MUSTER)
    async with run_rig(front=front) as rig:
        found = await find(rig, keys)
        own = (OWN_ID, "127.0.0.1", rig.port, 0)
    assert [found[key] for key in keys[:4]] == [own, RELAY, own, RELAY]
    assert front.asked[0].request.coordinator_keys == tuple(keys[1::2])
