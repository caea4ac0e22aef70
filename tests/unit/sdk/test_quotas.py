"""A member obeys the quotas of its client: it waits as long as it is told, and stays a member."""

from __future__ import annotations

import time

import muster
from model.access.quotas import QuotaEntity
from model.caller import ANONYMOUS, Caller
from muster import TopicPartition
from security.quotas.client_quotas import ClientQuotas, Work
from tests.support.service.stand import running_stand


def quotas_of(**limits: float) -> ClientQuotas:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("ANONYMOUS"), limits)
    return quotas


async def until_assigned(member: muster.Member) -> None:
    async for partitions in member.changes():
        if len(partitions) == 4:
            return


async def test_commits_over_the_quota_come_again_when_they_may() -> None:
    async with running_stand(
        quotas=quotas_of(commit_rate=20.0), session_timeout_ms=2_000, heartbeat_interval_ms=100
    ) as stand:
        lost: list[object] = []
        async with muster.Member(
            f"127.0.0.1:{stand.port}", "g", topics=["orders"], on_lost=lost.append
        ) as member:
            await until_assigned(member)
            epochs = {each.member_epoch for each in (await stand.members("g")).values()}
            began = time.monotonic()
            for offset in range(1, 261):
                await member.commit({TopicPartition("orders", offset % 4): offset})
            took_s = time.monotonic() - began
            assert took_s >= 2.5, "200 at once, and then 20 in a second"
            assert not lost
            assert {each.member_epoch for each in (await stand.members("g")).values()} == epochs


async def test_a_join_over_the_quota_comes_again_when_it_may() -> None:
    quotas = quotas_of(join_rate=10.0)
    async with running_stand(quotas=quotas) as stand:
        now = time.monotonic()
        meter = quotas.find_meter(Caller(ANONYMOUS, "", "/127.0.0.1"), now)
        for _ in range(103):
            meter.note(Work.JOIN, now)
        async with muster.Member(f"127.0.0.1:{stand.port}", "g", topics=["orders"]) as member:
            await until_assigned(member)
        assert time.monotonic() - now >= 0.4
