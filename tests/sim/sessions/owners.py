"""Who owns what, by what each application believes; who is in a group, and nobody speaks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeAlias

from coordinator.runtime.runtime import Runtime
from tests.sim.sessions.verdicts import check

GHOST_SLACK_S = 4.0


Holding: TypeAlias = tuple[str, int, bytes]
"""A partition by the name of its topic, and by the id, where the application was told one."""


class Believer(Protocol):
    """An application, as the checkers see it."""

    name: str
    group: str

    def believes(self) -> Collection[Holding]:
        """What it owns at this moment, as it would say itself, by its own clock."""

    def speaks_as(self) -> str:
        """The member id that it uses; empty for none."""


def check_owners(applications: Iterable[Believer]) -> None:
    """S2: no two own a partition."""
    owners: dict[tuple[str, Holding], Believer] = {}
    for application in applications:
        for partition in application.believes():
            other = owners.setdefault((application.group, partition), application)
            check(
                other is application,
                "S2",
                f"{application.name} and {other.name} own {partition[:2]} of {application.group}",
            )


def find_members(runtime: Runtime) -> set[tuple[str, str]]:
    """All that the groups of the server have."""
    found = {
        (str(group.group_id), str(member.member_id))
        for group in runtime.groups()
        for member in group.members()
    }
    for shard in runtime.shards:
        for group_id, classic in shard.all_classic_groups().items():
            found.update((str(group_id), str(member_id)) for member_id in classic.members)
    return found


class Ghosts:
    """Members that no application speaks for: they are gone within a session timeout.

    ``longest_s`` says how long one may be there, of a group.
    """

    def __init__(self, longest_s: Callable[[str], float]) -> None:
        self._longest_s = longest_s
        self._since: dict[tuple[str, str], float] = {}

    def forget(self) -> None:
        """Sessions begin anew, as after a restart."""
        self._since.clear()

    def look(
        self, members: set[tuple[str, str]], speakers: Mapping[tuple[str, str], str], now_s: float
    ) -> set[tuple[str, str]]:
        """Checks who is there; to be called often. The ghosts."""
        ghosts = members - speakers.keys()
        for ghost in self._since.keys() - ghosts:
            del self._since[ghost]
        for ghost in ghosts:
            bound_s = self._longest_s(ghost[0]) + GHOST_SLACK_S
            passed_s = now_s - self._since.setdefault(ghost, now_s)
            check(passed_s < bound_s, "ghost", f"{ghost} is there for {passed_s:.1f} s")
        return ghosts
