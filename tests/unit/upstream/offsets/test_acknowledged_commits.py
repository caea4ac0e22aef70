"""Whatever is lost and late: an acknowledged commit is there, and nothing takes it back."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

import pytest

from coordinator.runtime.api import CommitTicket
from model.errors import ErrorCode, GroupError
from model.responses.offsets import FetchedOffset, OffsetCommitResponse, OffsetFetchResponse
from tests.support.upstream.offset_cluster import COMMIT, Fate
from tests.support.upstream.offsets_rig import FOO, Asked, G, OffsetsRig, Released
from upstream.offsets import commit_requests

pytestmark = pytest.mark.usefixtures("_at_once")

PARTITIONS = 4
ROUNDS = 25
FATES: list[Fate] = [Fate.ANSWERED] * 6 + [*Fate]


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_requests, "REBALANCE_RETRY_S", 0)


class Workload:
    """Members commit offsets that grow, and fetch; what was acknowledged is remembered.

    With a ticket, who commits is no member.
    """

    def __init__(self, rig: OffsetsRig, random: Random, ticket: CommitTicket | None) -> None:
        self.rig = rig
        self._ticket = ticket
        self._random = random
        self.sent = [0] * PARTITIONS
        self.acknowledged = [0] * PARTITIONS
        self.violations: list[str] = []

    async def run(self) -> None:
        """Members at the same time; the cluster does late what it did not do."""
        self.rig.fake.find_fate = self._find_fate
        await asyncio.gather(*(self._go_on("ab"[n % 2]) for n in range(4)))
        self.rig.fake.find_fate = lambda request: Fate.ANSWERED
        self._do_late()
        self._check({n: self.rig.fake.offsets[G].get((FOO, n), (0,))[0] for n in range(PARTITIONS)})

    def _find_fate(self, request: object) -> Fate:
        """Of a request that arrives now, which is when late ones may arrive, too."""
        if self._random.random() < 0.3:
            self._do_late()
        if self._random.random() < 0.03:
            self.rig.seats.join(G)  # Another process has the seat, and gives it back.
        fate: Fate = self._random.choice(FATES)
        return fate

    def _do_late(self) -> None:
        self._random.shuffle(self.rig.fake.late)
        self.rig.fake.do_late()

    async def _go_on(self, member: str) -> None:
        for _ in range(ROUNDS):
            asked = [self._ask(member) for _ in range(self._random.randint(1, 4))]
            await asyncio.gather(*asked)

    async def _ask(self, member: str) -> None:
        if self._random.random() < 0.25:
            await self._fetch()
            return
        if self._ticket is not None and self._random.random() < 0.7:
            await self._repeat(self._ticket)
            return
        rows = []
        for number in self._random.sample(range(PARTITIONS), self._random.randint(1, 3)):
            self.sent[number] += 1
            rows.append((number, self.sent[number]))
        commit = partial(self.rig.commit, member) if self._ticket is None else self.rig.commit_alone
        answer = await commit(*rows).answer()
        if isinstance(answer, GroupError):
            return
        assert isinstance(answer, OffsetCommitResponse)
        done = {row.partition for row in answer.topics[0].partitions if not row.error}
        for number, offset in rows:
            if number in done:
                self.acknowledged[number] = max(self.acknowledged[number], offset)

    async def _repeat(self, ticket: CommitTicket) -> None:
        """Commit with a ticket."""
        number = self._random.randrange(PARTITIONS)
        self.sent[number] += 1
        offset = self.sent[number]
        if await Released(ticket, number, offset).code() is ErrorCode.NONE:
            self.acknowledged[number] = max(self.acknowledged[number], offset)

    async def _fetch(self) -> None:
        before = list(self.acknowledged)
        answer = await self.rig.fetch(*range(PARTITIONS)).answer()
        if isinstance(answer, OffsetFetchResponse):
            rows: tuple[FetchedOffset, ...] = answer.topics[0].partitions
            self._check({row.partition: row.offset for row in rows}, before)

    def _check(self, found: dict[int, int], least: list[int] | None = None) -> None:
        for number, acknowledged in enumerate(least or self.acknowledged):
            if max(found[number], 0) < acknowledged:
                self.violations.append(f"{number}: {found[number]}, acknowledged {acknowledged}")


async def run_workload(seed: int, *, fences: bool = True, by_ticket: bool = False) -> Workload:
    rig = OffsetsRig(fences=fences)
    await (rig.start_alone() if by_ticket else rig.start())
    workload = Workload(rig, Random(seed), rig.find_ticket() if by_ticket else None)
    await workload.run()
    await rig.stop()
    return workload


@pytest.mark.parametrize("by_ticket", [False, True], ids=["commands", "tickets"])
@pytest.mark.parametrize("seed", range(30))
async def test_acknowledged_commits_stay(seed: int, by_ticket: bool) -> None:
    workload = await run_workload(seed, by_ticket=by_ticket)
    assert workload.violations == []
    assert sum(workload.acknowledged) > PARTITIONS
    assert workload.rig.fake.most_running == 1
    assert any(request.key == COMMIT for request in workload.rig.fake.asked)


@pytest.mark.parametrize("by_ticket", [False, True], ids=["commands", "tickets"])
async def test_the_workload_finds_what_a_fence_prevents(by_ticket: bool) -> None:
    """Without one, some run loses an acknowledged commit."""
    found = [await run_workload(seed, fences=False, by_ticket=by_ticket) for seed in range(30)]
    assert any(workload.violations for workload in found)


async def test_everything_is_answered_once() -> None:
    rig = OffsetsRig()
    await rig.start()
    random = Random(1)
    rig.fake.find_fate = lambda request: random.choice(FATES)
    asked: list[Asked] = []
    for n in range(300):
        asked.append(rig.commit("a", (n % PARTITIONS, n)))
        asked.append(rig.fetch(n % PARTITIONS))
        if n % 7 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*(each.answer() for each in asked))
    assert all(len(each.answers) == 1 for each in asked)
    await rig.stop()
