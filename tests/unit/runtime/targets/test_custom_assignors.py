"""Custom assignors: found, run within limits, and their results checked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import MappingProxyType

import numpy as np
import pytest

from coordinator.runtime.runtime import Runtime
from coordinator.runtime.targets import custom_assignors
from coordinator.runtime.targets.assignor_runs import MOST_CUSTOM
from coordinator.runtime.targets.custom_assignors import AssignorNotFound, load_assignors
from model.caller import INTERNAL
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from muster.assignors.assignor import Assignor
from muster.assignors.problem import Problem
from muster.assignors.registry import ASSIGNORS
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.memory import MemoryLogStore
from tests.support.virtual.server import CALLER, VirtualServer, make_topic_id
from tests.support.waiting import until

FOO = "foo"
LIMIT_MS = 500


def assign_to_the_last(problem: Problem) -> object:
    """Assign everything to the last member in order."""
    return np.full(problem.partitions, problem.members - 1)


def assign_lists(problem: Problem) -> object:
    """The same, as lists."""
    return [*[[] for _ in range(problem.members - 1)], list(range(problem.partitions))]


def assign_to_a_stranger(problem: Problem) -> object:
    return np.full(problem.partitions, problem.members)


def assign_twice(problem: Problem) -> object:
    return [list(range(problem.partitions)) for _ in range(problem.members)]


def fail(problem: Problem) -> object:
    raise RuntimeError("no answer")


class CustomServer(VirtualServer):
    """Its first assignor is ``mine``, whose ``assign`` the test can change."""

    def __init__(self) -> None:
        self.assign: Callable[[Problem], object] = assign_uniform
        self.took_ms = 0
        super().__init__(
            {FOO: 4},
            settings=CoordinatorSettings(
                group_consumer_assignors=("mine", "uniform"), assignor_time_limit_ms=LIMIT_MS
            ),
        )
        self.scheduler.computing_ms = lambda: self.took_ms

    def start(self) -> None:
        super().start()
        mine = Assignor("mine", lambda problem: self.assign(problem), is_custom=True)
        assignors = MappingProxyType({**ASSIGNORS, "mine": mine})
        self.runtime.parts.targets._assignments._assignors = assignors

    def failures_by_reason(self) -> dict[str, int]:
        found = self.runtime.stats.assignor_failures_by_reason
        return {reason: count for reason, count in found.items() if count}

    def has(self, member: str) -> int:
        entry = self.group("g").member(MemberId(member))
        assert entry is not None
        return len(entry.target or ())


@pytest.fixture
def server() -> CustomServer:
    return CustomServer()


@pytest.mark.parametrize("assign", [assign_to_the_last, assign_lists])
def test_a_custom_assignor_decides(server: CustomServer, assign: Callable[..., object]) -> None:
    server.assign = assign
    server.join("g", "a", [FOO])
    server.join("g", "b", [FOO])
    assert (server.has("a"), server.has("b")) == (0, 4)
    assert server.failures_by_reason() == {}


@pytest.mark.parametrize(
    ("assign", "reason"),
    [(fail, "raised"), (assign_to_a_stranger, "junk"), (assign_twice, "junk")],
)
def test_what_fails_leaves_the_target_in_force(
    server: CustomServer, assign: Callable[..., object], reason: str
) -> None:
    server.join("g", "a", [FOO])
    server.assign = assign
    server.join("g", "b", [FOO])
    group = server.group("g")
    assert (group.group_epoch, group.target_epoch) == (3, 2)
    assert server.has("a") == 4
    assert server.failures_by_reason() == {reason: 1}
    server.advance(1_000)
    assert server.failures_by_reason() == {reason: 2}
    server.assign = assign_uniform
    server.advance(2_000)
    assert (group.target_epoch, server.has("a"), server.has("b")) == (3, 2, 2)


def test_one_that_is_late_leaves_the_target_in_force(server: CustomServer) -> None:
    server.join("g", "a", [FOO])
    server.took_ms = LIMIT_MS + 100
    server.submit(server.join_command("g", "b", [FOO]))
    server.advance(LIMIT_MS - 1)
    assert server.failures_by_reason() == {}
    server.advance(1)
    assert server.failures_by_reason() == {"late": 1}
    server.took_ms = 0
    server.advance(200)
    assert server.group("g").target_epoch == 2, "what comes too late is not installed"
    server.advance(1_000)
    assert (server.group("g").target_epoch, server.has("b")) == (3, 2)


def test_a_group_whose_assignor_is_gone_keeps_its_target(server: CustomServer) -> None:
    server.join("g", "a", [FOO])
    server.runtime.parts.targets._assignments._assignors = ASSIGNORS
    server.join("g", "b", [FOO])
    assert server.failures_by_reason() == {"missing": 1}
    assert server.has("a") == 4


def test_many_groups_wait_for_their_turn(server: CustomServer) -> None:
    for number in range(3 * MOST_CUSTOM):
        server.submit(server.join_command(f"g{number}", "a", [FOO]))
    server.settle()
    assert server.failures_by_reason() == {}
    for number in range(3 * MOST_CUSTOM):
        assert server.group(f"g{number}").target_epoch == 2


async def test_one_that_never_ends_holds_nobody_up() -> None:
    """With real threads: other groups get their targets, and a stop waits for nothing."""
    release = threading.Event()

    def hang(problem: Problem) -> object:
        release.wait()
        return assign_uniform(problem)

    hanging = {**ASSIGNORS, "mine": Assignor("mine", hang, is_custom=True)}
    settings = CoordinatorSettings(
        group_consumer_assignors=("uniform", "mine"),
        assignor_time_limit_ms=20,
        assignor_inline_budget_ms=0,
    )
    runtime = Runtime(MemoryLogStore(1), settings, assignors=hanging)
    await runtime.start()
    await runtime.loaded()
    await runtime.call(CreateTopic(INTERNAL, TopicName(FOO), make_topic_id(FOO), 2))
    try:
        for number in range(MOST_CUSTOM + 2):
            await join(runtime, f"h{number}", "mine")
        await join(runtime, "g", "uniform")
        late = runtime.stats.assignor_failures_by_reason
        await until(lambda: late["late"] >= MOST_CUSTOM + 2, "all that hang are given up")
        await until(lambda: runtime.stats.targets_installed >= 1, "the last has its target")
        threads = [one for one in threading.enumerate() if one.name == "muster-custom-assignor"]
        assert len(threads) == MOST_CUSTOM
        await runtime.stop()
    finally:
        release.set()


async def join(runtime: Runtime, group: str, assignor: str) -> None:
    names = (TopicName(FOO),)
    answer = await runtime.call(
        ConsumerGroupHeartbeat(
            CALLER,
            GroupId(group),
            MemberId("a"),
            0,
            60_000,
            names,
            server_assignor=assignor,
            owned=(),
        )
    )
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)


# ------------------------------------------------------------------------------- entry points


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """The entry points of installed packages."""
    found: list[EntryPoint] = []

    def entry_points(*, group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "muster.assignors"
        return [entry for entry in found if name in (None, entry.name)]

    monkeypatch.setattr(custom_assignors, "entry_points", entry_points)
    return found


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "muster.assignors")


HERE = "tests.unit.runtime.targets.test_custom_assignors"


def test_entry_points_are_found(packages: list[EntryPoint]) -> None:
    packages += [entry("mine", f"{HERE}:assign_to_the_last"), entry("uniform", f"{HERE}:fail")]
    loaded = load_assignors(["uniform", "mine"])
    assert set(loaded) == {*ASSIGNORS, "mine"}
    assert loaded["mine"].is_custom
    assert loaded["uniform"] is ASSIGNORS["uniform"], "what is built in stays"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "no installed package has an entry point of that name"),
        (f"{HERE}:nothing", "cannot be imported: AttributeError"),
        ("no.such.module:assign", "cannot be imported: ModuleNotFoundError"),
        (f"{HERE}:FOO", "is not a function"),
    ],
)
def test_what_cannot_be_loaded(packages: list[EntryPoint], value: str | None, said: str) -> None:
    packages += [entry("mine", value)] if value is not None else []
    with pytest.raises(AssignorNotFound, match=said):
        load_assignors(["mine"])


def test_two_packages_with_one_name(packages: list[EntryPoint]) -> None:
    packages += [entry("mine", f"{HERE}:fail"), entry("mine", f"{HERE}:assign_lists")]
    with pytest.raises(AssignorNotFound, match="several packages have an assignor mine"):
        load_assignors(["mine"])
