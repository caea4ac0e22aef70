"""Actions of a session stream: very many in one message, and one with very many elements.

What there is to do is derived from the descriptors, so that an action that is new is in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from coordinator.service.session.session_stream import serve_session
from coordinator.service.settings import GrpcSettings
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from muster.v1 import group_pb2
from tests.cost.server import CostServer, cost_server
from tests.cost.test_apis import G
from tests.cost.test_rpcs import ELEMENTS, fill, find_repeated, make_services
from tests.cost.test_starts import AT_REST
from tests.cost.turns import ATOMIC_STEPS_MAX, Counted, check_law

ACTION: Final = group_pb2.MemberAction.DESCRIPTOR
KINDS: Final = [field.name for field in ACTION.oneofs_by_name["action"].fields]
ACTIONS_MAX: Final = GrpcSettings().grpc_message_actions_max
MANY: Final = {"commit": COMMIT_PARTITIONS_MAX}
"""Of others nobody has as many."""
COMPUTING: Final = ("prepare_assignment", "install_assignment")
"""What is heard of who is asked for an assignment."""
REFUSED: Final = ("client_assignors",)
"""Of these nobody may have as many as are said here."""
FIELDS: Final = list(find_repeated(ACTION))
MEMBER: Final = "m"


class StreamEnded(Exception):
    """The server has ended the stream: nothing more is told on it."""


class Stream:
    """The server's side of a stream, with what a client says put into it."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[Any] = asyncio.Queue()
        self.told: list[group_pb2.MemberUpdate] = []

    def peer(self) -> str:
        return "ipv4:127.0.0.1:50000"

    async def send_initial_metadata(self, metadata: object) -> None:
        pass

    async def read(self) -> Any:
        return await self.said.get()

    async def write(self, response: group_pb2.SessionResponse) -> None:
        self.told += response.updates

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise StreamEnded(f"{code.name}: {details}")

    def say(self, *messages: group_pb2.SessionRequest) -> None:
        for message in messages:
            self.said.put_nowait(message)

    def find(self, kind: str) -> dict[str, group_pb2.MemberUpdate]:
        """The last of each member."""
        told = (update for update in self.told if update.WhichOneof("update") == kind)
        return {update.member_id: update for update in told}

    def has_joined(self, joins: Sequence[group_pb2.MemberAction]) -> bool:
        """Whether each was told so, and one is asked to compute where they name assignors."""
        is_asked = not joins[0].join.client_assignors or self.find("compute_assignment")
        return bool(is_asked) and len(self.find("assignment")) == len(joins)

    def find_joined(self) -> group_pb2.MemberUpdate:
        """What was told to the member that is asked to compute, or else to the first."""
        joined = self.find("assignment")
        return joined[next(iter(self.find("compute_assignment") or joined))]


Make = Callable[[group_pb2.MemberUpdate], list[group_pb2.MemberAction]]
"""The actions of one message, of what the member was told when it joined."""


def count_actions(
    server: CostServer, make: Make, first: Sequence[group_pb2.MemberAction] = ()
) -> Counted:
    """From the message to the last that is told of it; ``first`` are Joins that come before."""
    stream: Any = Stream()
    with server._on_loop():
        door = make_services(server)["GroupService"]._services
        task = server.loop.create_task(serve_session(door, stream))
    first = first or [make_join(1)]
    for at in range(0, len(first), ACTIONS_MAX):
        stream.say(group_pb2.SessionRequest(actions=first[at : at + ACTIONS_MAX]))
    server.loop.run_while(lambda: not stream.has_joined(first))
    joined = stream.find_joined()
    (session,) = door.sessions._sessions
    actions = make(joined)
    (group,) = server.runtime.groups()
    for action in actions:
        if action.WhichOneof("action") == "install_assignment":
            # Members hear of it in the answer to a Prepare.
            action.install_assignment.group_epoch = group.group_epoch
    request = group_pb2.SessionRequest(sequence=2, actions=actions)
    data = request.SerializeToString()
    stream.told.clear()
    # It is read when all before it are handled.
    last = group_pb2.MemberAction(group_id=G, member_id="last", commit=group_pb2.Commit())

    def say() -> None:
        stream.say(
            group_pb2.SessionRequest.FromString(data),
            group_pb2.SessionRequest(sequence=3, actions=[last]),
        )

    def is_done() -> bool:
        if task.done():  # Timers of the server go on for ever.
            task.result()
        has_read = any(update.member_id == "last" for update in stream.told)
        return has_read and bool(session.is_idle)

    counted = server.loop.count(say, is_done)
    counted.kept = stream.told
    task.cancel()
    server.loop.run_while(lambda: not task.done())
    return counted


def make_join(join_id: int, member: str = MEMBER, epoch: int = 0) -> group_pb2.MemberAction:
    return group_pb2.MemberAction(
        group_id=G,
        member_id=member,
        join=group_pb2.Join(
            join_id=join_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            subscription=group_pb2.Subscription(subscribed_topic_names=["t0"]),
        ),
    )


def make_computing(members: int, topics: int) -> list[group_pb2.MemberAction]:
    """Joins of members of which one is asked for the assignment."""
    joins = [make_join(1, f"{MEMBER}{number}") for number in range(members)]
    for action in joins:
        names = (f"t{number}" for number in range(1, topics))
        action.join.subscription.subscribed_topic_names.extend(names)
        action.join.client_assignors.add(name="a", maximum_version=1, version=1)
    return joins


def make_action(
    path: tuple[str, ...], count: int, joined: group_pb2.MemberUpdate, number: int = 0
) -> group_pb2.MemberAction:
    """An action of the member as it should be, with ``count`` elements at ``path``."""
    action = group_pb2.MemberAction()
    fill(action if len(path) > 1 else getattr(action, path[0]), path, count, number)
    action.group_id, action.member_id = G, joined.member_id
    said: Any = getattr(action, path[0])
    said_epoch = joined.assignment.member_epoch
    match path[0]:
        case "leave":
            said.ClearField("instance_id")
        case "join":
            _complete_join(said, path, said_epoch)
        case "install_assignment":
            said.ClearField("failure")
            said.member_epoch = said_epoch
            for at, member in enumerate(said.members):
                member.member_id, member.version = f"{MEMBER}{at}", 1
                if len(said.members) > 1:
                    member.partitions[0].partitions[:] = [at]
        case _:
            said.member_epoch = said_epoch
    return action


def _complete_join(said: Any, path: tuple[str, ...], epoch: int) -> None:
    said.ClearField("server_assignor")
    said.ClearField("instance_id")
    said.join_id, said.rebalance_timeout_ms = 2, 60_000
    if path[1:2] != ("subscription",):
        said.subscription.subscribed_topic_names.append("t0")
    # Who owns something comes back.
    said.member_epoch = epoch if path[1:2] == ("owned",) else 0
    if said.member_epoch == 0:
        said.ClearField("owned")
    if path[1:2] != ("client_assignors",):
        said.ClearField("client_assignors")
    for assignor in said.client_assignors:
        assignor.minimum_version, assignor.maximum_version, assignor.version = 0, 1, 1


@pytest.mark.parametrize("kind", KINDS)
def test_actions_are_linear_and_have_short_turns(kind: str, tmp_path: Path) -> None:
    runs = iter(range(100))

    def make(count: int, joined: group_pb2.MemberUpdate) -> list[group_pb2.MemberAction]:
        if kind == "join":
            return [make_join(1, f"m{number}") for number in range(count)]
        actions = [make_action((kind,), 0, joined, number) for number in range(count)]
        if kind == "leave":
            for number, action in enumerate(actions):
                action.member_id = f"{MEMBER}{number}"
        return actions

    def measure(count: int) -> Counted:
        first = [make_join(1)]
        if kind == "leave":
            first = [make_join(1, f"{MEMBER}{number}") for number in range(count)]
        elif kind in COMPUTING:
            first = make_computing(1, 1)
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            server.create(count, "t0")
            counted = count_actions(server, lambda joined: make(count, joined), first)
        check_handled(counted)
        return counted

    check_law(measure, ACTIONS_MAX // 8, ACTIONS_MAX)


@pytest.mark.parametrize("path", FIELDS, ids=".".join)
def test_one_action_is_linear(path: tuple[str, ...], tmp_path: Path) -> None:
    """It is one command, of which as much may be asked as of any; some of it is refused at once."""
    runs = iter(range(100))
    topics = path[-1] in ("topics", "owned") or path[-2:] == ("members", "partitions")

    def measure(count: int) -> Counted:
        first = [make_join(1)]
        if path[0] in COMPUTING:
            members = count if path[-1] == "members" else 1
            first = make_computing(members, count if topics else 1)
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            server.create(1 if topics else count, "t0")
            if topics:
                server.create(1, *(f"t{number}" for number in range(1, count)))
            counted = count_actions(
                server, lambda joined: [make_action(path, count, joined)], first
            )
        if path[-1] not in REFUSED:
            check_handled(counted)
        return counted

    n = ELEMENTS // 16 if path[-1] == "members" else ELEMENTS // 4
    check_law(measure, n, MANY.get(path[0], ELEMENTS), ATOMIC_STEPS_MAX)


def check_handled(counted: Counted) -> None:
    """What is refused early shows what decoding costs, and no more; of many the first may do."""
    told = [update for update in counted.kept if update.member_id != "last"]
    # What is acknowledged may be without an answer.
    assert not told or any(map(is_done, told)), told[0]


def is_done(update: group_pb2.MemberUpdate) -> bool:
    kind = update.WhichOneof("update")
    said: Any = getattr(update, kind or "")
    return kind not in ("refused", "fenced") and not (
        "error" in said.DESCRIPTOR.fields_by_name and said.HasField("error")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_a_member_says_after_it_left_is_answered(kind: str, tmp_path: Path) -> None:
    def make(joined: group_pb2.MemberUpdate) -> list[group_pb2.MemberAction]:
        leave = group_pb2.MemberAction(group_id=G, member_id=MEMBER)
        leave.leave.member_epoch = -1
        action = make_join(2) if kind == "join" else make_action((kind,), 0, joined)
        return [leave, *[action] * 40]

    with cost_server(tmp_path, settings=AT_REST) as server:
        server.create(1, "t0")
        counted = count_actions(server, make)
    told = [update for update in counted.kept if update.member_id == MEMBER]
    assert [update.WhichOneof("update") for update in told].count("left") >= 1
    if kind == "join":  # One that comes while another is asked for takes its place.
        assert told[-1].assignment.member_epoch > 0
    else:
        assert len(told) == 41


def test_who_counts_hears_that_the_stream_has_ended(tmp_path: Path) -> None:
    with cost_server(tmp_path, settings=AT_REST) as server:
        server.create(1, "t0")
        with pytest.raises(StreamEnded, match=f"INVALID_ARGUMENT: {ACTIONS_MAX + 1} actions"):
            count_actions(
                server,
                lambda joined: [make_action(("commit",), 0, joined)] * (ACTIONS_MAX + 1),
            )
