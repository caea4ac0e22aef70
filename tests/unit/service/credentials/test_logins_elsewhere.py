"""Credentials that a cluster checks: what calls get for right and wrong ones, and for no answer."""

from __future__ import annotations

import time
from typing import Any

import grpc
import grpc.aio
import pytest

from coordinator.service.credentials.authentication import MetadataAuthentication
from coordinator.service.credentials.login_checks import LoginChecks
from coordinator.service.credentials.verifiers import CannotVerify
from muster.v1 import admin_pb2
from security.identity import Identity
from security.sasl.conversation import NotAuthenticated
from tests.support.service.logins import NotedAudit
from tests.support.service.stand import running_stand
from tests.unit.service.credentials.test_authentication import basic, bearer


class Elsewhere:
    """Whoever checks: by ``known`` secrets, while it ``answers``."""

    def __init__(self, **known: str) -> None:
        self.known = known
        self.answers = True
        self.asked: list[tuple[str, str]] = []

    async def verify(self, user: str, secret: str) -> Identity:
        self.asked.append((user, secret))
        if not self.answers:
            raise CannotVerify
        if self.known.get(user or "token") != secret:
            raise NotAuthenticated("refused by the cluster")
        return Identity(f"User:{user or 'carol'}")


async def find_status(elsewhere: Elsewhere, *calls: Any) -> tuple[list[str], NotedAudit]:
    audit = NotedAudit()
    made = MetadataAuthentication(
        tokens=None,
        passwords=LoginChecks(elsewhere, b"k"),
        token_logins=LoginChecks(elsewhere, b"l"),
        delay_s=0.0,
        audit=audit,
        key=b"m",
        wall_clock_s=time.time,
    )
    statuses = []
    async with running_stand(authenticate=made.authenticate) as stand:
        for metadata in calls:
            try:
                await stand.admin_stub().ListTopics(
                    admin_pb2.ListTopicsRequest(), metadata=metadata, timeout=30
                )
                statuses.append("OK")
            except grpc.aio.AioRpcError as error:
                statuses.append(error.code().name)
    return statuses, audit


async def test_right_ones_are_remembered() -> None:
    elsewhere = Elsewhere(alice="secret", token="t0ken")
    calls = [basic("alice", "secret"), bearer("t0ken")] * 3
    assert (await find_status(elsewhere, *calls))[0] == ["OK"] * 6
    assert elsewhere.asked == [("alice", "secret"), ("", "t0ken")]


async def test_wrong_ones_are_asked_about_each_time() -> None:
    elsewhere = Elsewhere(alice="secret", token="t0ken")
    calls = [basic("alice", "guess"), bearer("x")] * 2
    statuses, audit = await find_status(elsewhere, *calls)
    assert statuses == ["UNAUTHENTICATED"] * 4
    assert len(elsewhere.asked) == 4
    assert {failure[3] for failure in audit.failures} == {"refused by the cluster"}


@pytest.mark.parametrize("metadata", [basic("alice", "secret"), bearer("t0ken")])
async def test_no_answer_is_no_refusal(metadata: Any) -> None:
    elsewhere = Elsewhere(alice="secret", token="t0ken")
    elsewhere.answers = False
    statuses, audit = await find_status(elsewhere, metadata)
    assert statuses == ["UNAVAILABLE"]
    assert audit.failures == []
