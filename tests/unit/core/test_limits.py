"""Ids that become keys of the log fit into them."""

from __future__ import annotations

import pytest

from tests.sim.server import VirtualServer, error_name


@pytest.mark.parametrize("group", ["g" * 40_000, "ü" * 20_000])
def test_a_group_id_of_too_many_bytes_is_refused(group: str) -> None:
    """Trigger: counted in characters it was short enough; a key has 32,767 bytes at most."""
    server = VirtualServer({"foo": 1})
    assert error_name(server.ask(server.join_command(group, "a", ["foo"]))) == "INVALID_GROUP_ID"
    commit = server.commit_command(group, "", None, "foo", {0: 1})
    assert error_name(server.ask(commit)) == "INVALID_GROUP_ID"
    assert server.failures == []
    server.join("g", "a", ["foo"])


@pytest.mark.parametrize("member", ["m" * 40_000, "ü" * 20_000])
def test_a_member_id_of_too_many_bytes_is_refused(member: str) -> None:
    server = VirtualServer({"foo": 1})
    assert error_name(server.ask(server.join_command("g", member, ["foo"]))) == "INVALID_REQUEST"
    assert server.failures == []
