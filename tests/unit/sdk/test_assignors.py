"""Assignors that members bring, over a real server: who computes, who is told, what ends early."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import muster
from model.caller import INTERNAL
from model.commands.consumer import ConsumerGroupHeartbeat
from model.ids import GroupId, MemberId, TopicName
from muster.v1 import assignors_pb2, group_pb2, types_pb2
from tests.groups import CHECKOUT
from tests.support.service.session_client import GROUP, SessionClient, join
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.connection.proxy import running_proxy
from tests.unit.sdk.test_member import ALL, make_member
from tests.unit.sdk.watcher import Ledger


@dataclass
class Notes:
    """What the assignors of all members did."""

    groups: list[muster.Group] = field(default_factory=list)
    told: list[tuple[str, int, frozenset[int], bytes]] = field(default_factory=list)


class ToTheFirst(muster.Assignor):
    """Everything goes to the member that says the lowest bytes; each is told who that is."""

    name = "first"
    minimum_version = 0
    maximum_version = 1

    def __init__(self, says: str, notes: Notes) -> None:
        self.says = says
        self.notes = notes

    def metadata(self) -> muster.Metadata:
        return muster.Metadata(1, self.says.encode())

    def assign(self, group: muster.Group) -> Mapping[str, muster.MemberAssignment]:
        self.notes.groups.append(group)
        first = min(group.members.values(), key=lambda member: member.metadata.data or b"~")
        everything = frozenset(
            muster.TopicPartition(topic.name, partition)
            for topic in group.topics.values()
            for partition in range(topic.partitions)
        )
        said = muster.Metadata(group.version, first.metadata.data)
        return {
            member_id: muster.MemberAssignment(
                everything if member_id == first.member_id else frozenset(), said
            )
            for member_id in group.members
        }

    def on_assignment(self, assignment: muster.MemberAssignment, generation: int) -> None:
        partitions = frozenset(partition.partition for partition in assignment.partitions)
        data = assignment.metadata.data
        self.notes.told.append((self.says, generation, partitions, data))


class Raising(ToTheFirst):
    def assign(self, group: muster.Group) -> Mapping[str, muster.MemberAssignment]:
        raise RuntimeError("no idea")


class Slow(ToTheFirst):
    """Waits until it is let go."""

    def __init__(self, says: str, notes: Notes) -> None:
        super().__init__(says, notes)
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()

    async def assign(  # type: ignore[override]
        self, group: muster.Group
    ) -> Mapping[str, muster.MemberAssignment]:
        self.began.set()
        await self.go_on.wait()
        return super().assign(group)


def epoch_of(stand: Stand) -> tuple[int, int]:
    (group,) = stand.runtime.groups()
    return group.group_epoch, group.target_epoch


def make(
    stand: Stand, says: str, notes: Notes, ledger: Ledger, kind: type[ToTheFirst] = ToTheFirst
) -> tuple[muster.Member, ToTheFirst]:
    assignor = kind(says, notes)
    return make_member(stand, ledger, says, assignors=[assignor]), assignor


# ---------------------------------------------------------------------------------- the usual way


async def test_a_member_computes_and_every_member_is_told(stand: Stand) -> None:
    notes, ledger = Notes(), Ledger()
    b, _ = make(stand, "b", notes, ledger)
    a, _ = make(stand, "a", notes, ledger)
    async with b:
        await until(lambda: b.assignment == ALL)
        async with a, make_member(stand, ledger, "stock") as stock:
            await until(lambda: a.assignment == ALL and not b.assignment and not stock.assignment)
            generation = epoch_of(stand)[0]
            # Two more members, and two more epochs at most: told once each.
            await until(
                lambda: {said for said, at, *_ in notes.told if at == generation} == set("ab")
            )
            everything = frozenset(range(4))
            assert ("a", generation, everything, b"a") in notes.told
            assert ("b", generation, frozenset(), b"a") in notes.told
            said = {m.member_id: m.metadata for m in notes.groups[-1].members.values()}
            assert said[stock.member_id] == muster.Metadata(-1, b"")
            assert said[a.member_id] == muster.Metadata(1, b"a")
            assert notes.groups[-1].topics["orders"].partitions == 4
            assert notes.groups[-1].version == 1
    assert len(notes.told) == len(set(notes.told))
    assert ledger.overlaps == []


async def test_other_metadata_or_another_reason_ask_for_an_assignment(stand: Stand) -> None:
    notes, ledger = Notes(), Ledger()
    b, of_b = make(stand, "b", notes, ledger)
    a, _ = make(stand, "a", notes, ledger)
    async with a, b:
        await until(lambda: a.assignment == ALL)
        of_b.says = "0"
        b.request_assignment()
        await until(lambda: b.assignment == ALL and not a.assignment)
        epoch = epoch_of(stand)[0]
        b.request_assignment(2)
        await until(lambda: epoch_of(stand) == (epoch + 1, epoch + 1))
        reasons = {m.metadata.reason for m in notes.groups[-1].members.values()}
        assert reasons == {0, 2}
    assert ledger.overlaps == []


async def test_what_is_not_told_is_told_after_a_restart_and_nothing_twice(stand: Stand) -> None:
    notes, ledger = Notes(), Ledger()
    a, _ = make(stand, "a", notes, ledger)
    async with a:
        await until(lambda: len(notes.told) == 1)
        before = epoch_of(stand)
        await stand.stop_server()
        await stand.restart()
        await until(lambda: a.assignment == ALL and list(stand.runtime.groups()))
        b, _ = make(stand, "b", notes, ledger)
        async with b:
            await until(lambda: epoch_of(stand)[1] == before[1] + 1)
            await until(lambda: {"a", "b"} == {said for said, *_ in notes.told[1:]})
    assert [told[1] for told in notes.told if told[0] == "a"] == sorted(
        {told[1] for told in notes.told if told[0] == "a"}
    )


async def test_one_that_raises_leaves_it_to_the_server_at_once(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    notes, ledger = Notes(), Ledger()
    a, _ = make(stand, "a", notes, ledger, Raising)
    async with a:
        await until(lambda: a.assignment == ALL)
    assert notes.told == []
    assert stand.runtime.stats.assignor_failures_by_reason["raised"] >= 1
    assert "no idea" in caplog.text


async def test_the_program_of_the_docs_runs(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = (CHECKOUT / "docs" / "assignors.md").read_text(encoding="utf-8")
    (program,) = (
        text for text in re.findall(r"```python\n(.*?)```", docs, re.S) if "import muster" in text
    )
    names: dict[str, Any] = {}
    exec(program.replace("127.0.0.1:50051", stand.target), names)
    async with names["member"] as member:
        await until(lambda: member.assignment == ALL)
    assert capsys.readouterr().out == "2 b'for it'\n"


async def test_a_large_group_is_told_to_who_computes(stand: Stand) -> None:
    """Beside 400 members of the Kafka wire, which have no stream."""
    for number in range(400):
        await stand.runtime.call(
            ConsumerGroupHeartbeat(
                INTERNAL,
                GroupId("billing"),
                MemberId(f"stock-{number}"),
                0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=(TopicName("orders"),),
                owned=(),
            )
        )
    notes, ledger = Notes(), Ledger()
    a, _ = make(stand, "a", notes, ledger)
    async with a:
        await until(
            lambda: ("a", frozenset(range(4))) in {(s, what) for s, _, what, _ in notes.told}
        )
        assert len(notes.groups[-1].members) == 401


async def test_a_bad_assignor_is_refused(stand: Stand) -> None:
    class Nameless(ToTheFirst):
        name = ""

    class Backwards(ToTheFirst):
        minimum_version = 2

    for kind in (Nameless, Backwards):
        member, _ = make(stand, "a", Notes(), Ledger(), kind)
        with pytest.raises(muster.JoinRefused, match="INVALID_REQUEST"):
            await member.join()


async def test_the_group_changes_while_a_member_computes(stand: Stand) -> None:
    """Nobody waits for what it computes: that is cancelled, and it computes for the new group."""
    notes, ledger = Notes(), Ledger()
    a, slow = make(stand, "a", notes, ledger, Slow)
    assert isinstance(slow, Slow)
    async with a:
        await slow.began.wait()
        async with make_member(stand, ledger, "stock"):
            before = epoch_of(stand)[0]
            slow.go_on.set()
            await until(lambda: epoch_of(stand) == (before, before))
            # Its own assignor is told after on_assigned has returned.
            await until(lambda: a.assignment == ALL and notes.told)
            assert [len(group.members) for group in notes.groups] == [2]
            assert [at for _, at, *_ in notes.told] == [before]


# ------------------------------------------------------------------------- one that dies on its way


def named(says: str) -> assignors_pb2.ClientAssignor:
    return assignors_pb2.ClientAssignor(
        name="first", minimum_version=0, maximum_version=1, version=1, metadata=says.encode()
    )


def prepare(member_epoch: int) -> group_pb2.MemberAction:
    said = assignors_pb2.PrepareAssignment(member_epoch=member_epoch)
    return group_pb2.MemberAction(group_id=GROUP, member_id="0", prepare_assignment=said)


def install(
    member_epoch: int, group_epoch: int, topic_id: bytes, *partitions: int
) -> group_pb2.MemberAction:
    given = types_pb2.TopicPartitions(topic_id=topic_id, partitions=partitions)
    said = assignors_pb2.InstallAssignment(
        member_epoch=member_epoch,
        group_epoch=group_epoch,
        members=[assignors_pb2.ComputedMember(member_id="0", partitions=[given])],
    )
    return group_pb2.MemberAction(group_id=GROUP, member_id="0", install_assignment=said)


ASKED, PREPARING, PREPARED, INSTALLING, INSTALLED = range(5)


@pytest.mark.parametrize("step", [ASKED, PREPARING, PREPARED, INSTALLING, INSTALLED])
@pytest.mark.parametrize("leaves", [False, True])
async def test_the_computing_member_dies(stand: Stand, step: int, leaves: bool) -> None:
    """Its stream breaks, or it leaves, at any step: another member computes; none owns in vain."""
    notes, ledger = Notes(), Ledger()
    topic_id = stand.runtime.image.by_name["orders"].topic_id  # type: ignore[index]
    dying = SessionClient(stand.group_stub())
    assignment = await dying.join("0", client_assignors=[named("0")])
    await dying.settle("0", assignment)
    await dying.expect("compute_assignment", "0")
    epoch, member_epoch = epoch_of(stand)[0], assignment.member_epoch
    if step >= PREPARING:
        await dying.send(prepare(member_epoch))
    if step >= PREPARED:
        prepared = await dying.expect("prepared_assignment", "0")
        assert not prepared.HasField("error")
        assert prepared.group_epoch == epoch
    if step >= INSTALLING:
        await dying.send(install(member_epoch, epoch, topic_id, 0, 1, 2, 3))
    if step >= INSTALLED:
        installed = await dying.expect("installed_assignment", "0")
        assert not installed.HasField("error")
    if leaves:
        left = group_pb2.Leave(member_epoch=-1)
        await dying.send(group_pb2.MemberAction(group_id=GROUP, member_id="0", leave=left))
        await until(lambda: not next(iter(stand.runtime.groups())).member_count)
    dying.call.cancel()
    b, _ = make(stand, "b", notes, ledger)
    async with b:
        await until(lambda: epoch_of(stand)[1] == epoch_of(stand)[0] > epoch)
        await until(lambda: any(said == "b" for said, *_ in notes.told))
        # One whose stream broke is there until its session ends.
        assert set(notes.groups[-1].members) == {b.member_id} | (set() if leaves else {"0"})
        if leaves:
            await until(lambda: b.assignment == ALL)
    assert ledger.overlaps == []


async def test_the_server_dies_before_the_assignment_is_durable(stand: Stand) -> None:
    notes, ledger = Notes(), Ledger()
    a, slow = make(stand, "a", notes, ledger, Slow)
    assert isinstance(slow, Slow)
    async with a:
        await slow.began.wait()
        slow.began.clear()
        await stand.stop_server()
        slow.go_on.set()
        await stand.restart()
        # The assignor is told after the member has it.
        await until(lambda: a.assignment == ALL and bool(notes.told))
        assert len(notes.told) == 1
        assert epoch_of(stand)[0] == epoch_of(stand)[1]


async def test_refused_is_what_is_stale_illegal_or_not_asked_for(stand: Stand) -> None:
    topic_id = stand.runtime.image.by_name["orders"].topic_id  # type: ignore[index]
    client = SessionClient(stand.group_stub())

    async def reason(action: group_pb2.MemberAction, kind: str) -> str:
        await client.send(action)
        answer = await client.expect(kind)
        return str(answer.error.reason)

    assert await reason(prepare(1), "prepared_assignment") == "UNKNOWN_MEMBER_ID"
    assert await reason(install(1, 2, topic_id, 0), "installed_assignment") == "UNKNOWN_MEMBER_ID"
    assignment = await client.join("0", client_assignors=[named("0")])
    await client.expect("compute_assignment")
    epoch, at = assignment.member_epoch, epoch_of(stand)[0]
    kind = "installed_assignment"
    assert await reason(install(epoch, at - 1, topic_id, 0), kind) == "ILLEGAL_GENERATION"
    assert await reason(install(epoch + 9, at, topic_id, 0), kind) == "FENCED_MEMBER_EPOCH"
    assert await reason(install(epoch, at, bytes(16), 0), kind) == "INVALID_REQUEST"
    # The server has computed it instead.
    assert await reason(install(epoch, at, topic_id, 0), kind) == "ILLEGAL_GENERATION"
    assert epoch_of(stand) == (at, at)
    client.call.cancel()


async def test_a_name_that_is_too_long_is_refused(stand: Stand) -> None:
    said = named("x")
    said.name = "n" * 2_000
    client = SessionClient(stand.group_stub())
    await client.send(join("0", client_assignors=[said]))
    refused = await client.expect("refused")
    assert refused.error.reason == "INVALID_REQUEST"
    client.call.cancel()


class Unreadable(ToTheFirst):
    """Cannot say anything of itself while ``fails``."""

    fails = False

    def metadata(self) -> muster.Metadata:
        if self.fails:
            raise OSError("no such file")
        return super().metadata()


async def test_metadata_that_cannot_be_said_is_the_failure_of_that_join(stand: Stand) -> None:
    assignor = Unreadable("a", Notes())
    assignor.fails = True
    with pytest.raises(muster.CallbackFailed, match="metadata of assignor 'first' raised OSError"):
        await make_member(stand, assignors=[assignor]).join()
    async with make_member(stand) as other:
        with pytest.raises(muster.CallbackFailed):
            await make_member(stand, assignors=[assignor]).join()
        await until(lambda: other.assignment == ALL)


async def test_metadata_that_cannot_be_said_again_ends_that_member_and_no_other(
    stand: Stand,
) -> None:
    assignor = Unreadable("a", Notes())
    async with (
        running_proxy(stand.port) as proxy,
        muster.Member(proxy.target, "another", topics=["orders"]) as other,
        muster.Member(proxy.target, GROUP, topics=["orders"], assignors=[assignor]) as member,
    ):
        await until(lambda: other.assignment == member.assignment == ALL)
        assignor.fails = True
        with pytest.raises(muster.CallbackFailed):
            member.request_assignment(7)
        assert member.poll() == ALL
        proxy.cut()
        await other.commit(dict.fromkeys(ALL, 1))
        with pytest.raises(muster.CallbackFailed):
            member.poll()
        assert other.poll() == ALL


class Cancelled(ToTheFirst):
    """Asks for something that was cancelled."""

    def assign(self, group: muster.Group) -> Mapping[str, muster.MemberAssignment]:
        raise asyncio.CancelledError


class CancelledWhileItWaits(ToTheFirst):
    async def assign(  # type: ignore[override]
        self, group: muster.Group
    ) -> Mapping[str, muster.MemberAssignment]:
        raise asyncio.CancelledError


class Hanging(ToTheFirst):
    """A function that does not return before it is let go."""

    def __init__(self, says: str, notes: Notes) -> None:
        super().__init__(says, notes)
        self.gate = threading.Event()

    def assign(self, group: muster.Group) -> Mapping[str, muster.MemberAssignment]:
        self.notes.groups.append(group)
        self.gate.wait()
        return {}


@pytest.mark.parametrize("kind", [Cancelled, CancelledWhileItWaits])
async def test_an_assignor_that_awaits_what_was_cancelled_has_failed(
    stand: Stand, kind: type[ToTheFirst]
) -> None:
    """The server computes at once, at each change."""
    async with make_member(stand, assignors=[kind("a", Notes())]) as member:
        await until(lambda: member.assignment == ALL)
        async with make_member(stand, name="b") as other:
            await until(lambda: len(other.assignment) == 2)


async def test_an_assignor_that_hangs_delays_no_later_generation(stand: Stand) -> None:
    """Whoever is asked anew is asked for another group; the thread that is lost is one."""
    hanging = Hanging("a", Notes())
    async with make_member(stand, assignors=[hanging]) as member:
        await until(lambda: hanging.notes.groups)
        async with make_member(stand, name="b") as other:
            await until(lambda: member.assignment | other.assignment == ALL)
            assert len(hanging.notes.groups) == 1
            hanging.gate.set()


_NEVER_RETURNS = """
import asyncio, threading
from muster.connection.unary import call_in_thread

async def main():
    began = threading.Event()
    def hang():
        began.set()
        threading.Event().wait()
    calls = [call_in_thread(hang) for _ in range(40)]
    began.wait()
    # Names are looked up in the loop's own threads, of which there are few.
    await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 1)
    print("looked up")

asyncio.run(main())
"""


async def test_functions_that_never_return_keep_no_program_from_ending() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _NEVER_RETURNS, cwd=CHECKOUT, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(30):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert (said, process.returncode) == (b"looked up\n", 0)
