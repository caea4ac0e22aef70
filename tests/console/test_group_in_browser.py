"""The page of a group in a real browser: a rebalance live, lanes, the slider, play, keys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from muster.v1 import group_pb2, group_pb2_grpc
from tests.browser import Tab, open_browser
from tests.groups import CHECKOUT
from tests.server import MusterServer

GROUP = "bill<b>ing"
PAGE = "/groups/bill%3Cb%3Eing"
TEXT = "document.getElementById('{}').textContent"


@dataclass
class Member:
    """A member that reports what it was given with its next heartbeat."""

    stub: group_pb2_grpc.GroupServiceStub
    member_id: str
    epoch: int = 0
    owned: Any = field(default_factory=lambda: None)

    def beat(self) -> None:
        request = group_pb2.HeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            client_id=f"client of {self.member_id}",
            owned=self.owned,
        )
        if self.epoch == 0:
            request.subscription.subscribed_topic_names.append("orders")
            request.rebalance_timeout_ms = 60_000
            request.owned.SetInParent()
        answer = self.stub.Heartbeat(request)
        assert not answer.HasField("error"), answer.error
        self.epoch = answer.member_epoch
        if answer.HasField("assignment"):
            self.owned = answer.assignment


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MusterServer]:
    with MusterServer(tmp_path_factory.mktemp("server") / "data", topics={"orders": 4}) as running:
        yield running


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.show()
        yield opened


def describe(server: MusterServer, offset: int) -> Any:
    """What the command line says of the group at a past position."""
    command = [sys.executable, "-m", "cli", "group", "describe", GROUP, "-o", "json"]
    command += ["--as-of", f"offset:{offset}", "--server", server.grpc]
    found = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def test_a_rebalance_is_seen_live_and_again_in_the_past(server: MusterServer, tab: Tab) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        stub = group_pb2_grpc.GroupServiceStub(channel)
        first, second = Member(stub, "m-1"), Member(stub, "m-2")
        for _ in range(2):
            first.beat()
        tab.go(f"http://{server.http}{PAGE}")
        assert tab.evaluate("document.title").startswith(GROUP)
        tab.wait_for(TEXT.format("live") + ".startsWith('Live')")
        assert "m-2" not in tab.evaluate(TEXT.format("members"))

        second.beat()
        tab.wait_for(TEXT.format("members") + ".includes('client of m-2')")
        waits = tab.wait_for(TEXT.format("waits"))
        assert "m-2 waits for" in waits
        assert "from m-1" in waits
        for member in (first, second) * 3:
            member.beat()
        tab.wait_for(TEXT.format("state") + ".includes('Stable')")
        assert tab.evaluate("document.querySelectorAll('#members tbody tr').length") == 2
        tab.wait_for(TEXT.format("timeline") + ".match(/converged/g).length == 2")
        assert tab.evaluate("document.getElementById('waits').children.length") == 0

    tab.press("l")
    tab.wait_for("document.querySelectorAll('#lanes-here g.withheld').length >= 2")
    assert tab.evaluate("document.querySelectorAll('#lanes-here [data-lane]').length") == 4

    tab.press("s")
    count = int(tab.wait_for("document.getElementById('moment')?.max"))
    assert count > 3
    tab.evaluate(
        "const r = document.getElementById('moment'); r.value = '1';"
        "r.dispatchEvent(new Event('input'))"
    )
    offset = int(tab.wait_for("document.getElementById('group').dataset.at"))
    assert tab.evaluate("location.search") == f"?at=offset%3A{offset}"
    past = describe(server, offset)
    assert tab.evaluate(TEXT.format("epoch")) == str(past["group_epoch"])
    shown = tab.evaluate("[...document.querySelectorAll('#members th.id')].map(e => e.textContent)")
    assert shown == [member["member_id"] for member in past["members"]]

    tab.press("]")
    tab.wait_for(f"document.getElementById('group').dataset.at > {offset}")
    tab.evaluate("history.back()")
    tab.wait_for(f"document.getElementById('group').dataset.at == {offset}")
    tab.evaluate(f"document.getElementById('moment').value = '{count - 1}'")
    tab.press("p")
    tab.wait_for("!document.getElementById('group').dataset.at")
    tab.wait_for(TEXT.format("play") + " == 'Play'")
    tab.wait_for("document.getElementById('live')?.textContent.startsWith('Live')")
    assert tab.errors == []
    assert {url.split("/")[2] for url in tab.requests if url.startswith("http")} == {server.http}
