"""Requests of a server that traces nothing take no step for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commands.group_command_runner import GroupCommands
from coordinator.runtime.commit.syncs import Syncs
from coordinator.runtime.commit.writer import Writer
from gateway.headers import Routes
from tests.cost.server import CostServer, cost_server
from tests.support.gateway.wire_rig import HEARTBEAT
from tests.support.gateway.wire_steps import COMMIT, METADATA, commit_topics
from tests.support.traced import Traced
from tests.support.wire.fields import join

ROOMS: Final = (
    "coordinator/runtime/trips/",
    "coordinator/runtime/traced_parts.py",
    "coordinator/service/calls/traced_handlers.py",
    "gateway/traces/",
    "cli/serve/traces/",
    "opentelemetry/",
)
REQUESTS: Final[dict[str, tuple[int, int, dict[str, Any]]]] = {
    "commit": (
        COMMIT,
        9,
        {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": commit_topics(9, "t", {0: (7, "")}),
        },
    ),
    "heartbeat": (HEARTBEAT, 1, join("members", "m", ("t",))),
    "metadata": (METADATA, 12, {}),
}


@contextmanager
def files_entered() -> Iterator[set[str]]:
    """The files whose functions are called, on this thread."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(before)


def find_tracing(entered: set[str]) -> set[str]:
    return {path for path in entered if any(room in path for room in ROOMS)}


def serve(server: CostServer, name: str) -> set[str]:
    """Ask for it, and again: what does tracing that was entered meanwhile."""
    key, version, fields = REQUESTS[name]
    with files_entered() as entered:
        for _ in range(3):
            server.ask(key, version, **fields)
    return find_tracing(entered)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_server_that_traces_nothing_enters_nothing_of_it(tmp_path: Path, name: str) -> None:
    with cost_server(tmp_path) as server:
        server.create(1, "t")
        assert serve(server, name) == set()
        parts = server.runtime.parts
        kinds = (type(parts.writer), type(parts.writer.syncs), type(parts.apply))
        assert kinds == (Writer, Syncs, Apply)
        assert type(parts.groups) is GroupCommands
        assert type(server.gateway.shared.routes) is Routes
        assert type(server.door.connection.repeats) is dict


@pytest.mark.parametrize("name", REQUESTS)
def test_one_that_traces_some_is_seen_to_do_so(tmp_path: Path, name: str) -> None:
    with cost_server(tmp_path, trips=Traced().trips) as server:
        server.create(1, "t")
        assert serve(server, name)


def test_a_commit_that_is_not_chosen_costs_little_more(tmp_path: Path) -> None:
    key, version, fields = REQUESTS["commit"]
    steps = []
    for trips in (None, Traced(one_in=2**31).trips):
        with cost_server(tmp_path / str(len(steps)), trips=trips) as server:
            server.create(1, "t")
            for _ in range(2):
                server.ask(key, version, **fields)
            steps.append(server.count(key, version, **fields).total)
    plain, traced = steps
    assert plain < traced <= plain + 60, steps
