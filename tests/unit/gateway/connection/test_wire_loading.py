"""A server that is still loading its groups answers as Kafka does."""

from __future__ import annotations

import pytest

from coordinator.runtime.loading.loading import Loading
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    DESCRIBE,
    DESCRIBE_GROUPS,
    FIND,
    HEARTBEAT,
    LIST,
    METADATA,
    commit_codes,
    commit_topics,
    fetch,
)
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def ask_all(client: Connection) -> dict[str, set[int]]:
    """The error codes of every group API, by a name for the request."""
    codes: dict[str, set[int]] = {}
    answer = await client.ask(HEARTBEAT, 1, **join("g", "m", ("t",)))
    codes["join"] = {answer.error_code}
    answer = await client.ask(COMMIT, 9, group_id="s", topics=commit_topics(9, "t", {0: (5, "")}))
    codes["commit"] = set(commit_codes(answer))
    for version in (7, 9):
        codes[f"fetch v{version}"] = {(await fetch(client, version, "s"))["error"]}
    codes["list"] = {(await client.ask(LIST, 5)).error_code}
    for name, key, version in (("describe", DESCRIBE, 1), ("describe classic", DESCRIBE_GROUPS, 5)):
        field = "group_ids" if key == DESCRIBE else "groups"
        answer = await client.ask(key, version, **{field: ("g", "s")})
        codes[name] = {group.error_code for group in answer.groups}
    return codes


async def test_everything_of_a_group_is_answered_load_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Loading, "begin", lambda loading: None)
    async with run_rig(is_loaded=False) as rig:
        await rig.create_topic("t", 2)
        async with await rig.connect() as client:
            codes = await ask_all(client)
            assert codes == {name: {LOADING} for name in codes}
            assert (await client.ask(HEARTBEAT, 1, **beat("g", "m", -1))).error_code == LOADING
            await check_others(rig, client)
            assert rig.runtime._serving.loading is not None
            rig.runtime._serving.loading.finish()
            codes = await ask_all(client)
            assert LOADING not in set().union(*codes.values())
            assert codes["join"] == codes["commit"] == codes["list"] == {0}


async def check_others(rig: Rig, client: Connection) -> None:
    """Requests that concern no group are served: FindCoordinator, Metadata."""
    found = await client.ask(FIND, 4, key_type=0, coordinator_keys=("g",))
    assert [(row.error_code, row.port) for row in found.coordinators] == [(0, rig.port)]
    metadata = await client.ask(METADATA, 12, topics=None)
    assert [topic.name for topic in metadata.topics] == ["t"]
    assert not rig.runtime.ready()
