"""The results of the demo: checks, and how long each change took to converge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.demo.ledger import Ownership, find_two_owners


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a group and its effect.

    ``converged_s``: seconds from the change to the last partition that moved because of it;
    ``None`` if the group did not settle in time. ``moved``: partitions given to another member.
    """

    title: str
    group_id: str
    converged_s: float | None
    moved: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A statement, whether it holds, and the evidence."""

    statement: str
    holds: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Outage:
    """The state before the server was killed and after it was back.

    ``committed`` and ``found`` are offsets by group and partition; the audit group has one
    partition, in which no other client commits.
    """

    down_s: float
    committed: Mapping[str, Mapping[int, int]]
    commits: int
    found: Mapping[str, Mapping[int, int]]
    audit_acknowledged: int
    audit_attempted: int
    audit_found: int
    epochs_before: Mapping[str, object]
    epochs_after: Mapping[str, object]
    moves: int


def check_one_owner(
    ownerships: Mapping[str, Sequence[Ownership]], double: Sequence[str], polls: int
) -> Check:
    """No partition had two owners, according to the workers and to the server."""
    overlaps = [
        f"{group_id}: partition {two.partition} of {two.first} and {two.second} for "
        f"{two.seconds * 1000:.0f} ms"
        for group_id, entries in ownerships.items()
        for two in find_two_owners(entries)
    ]
    count = sum(map(len, ownerships.values()))
    found = [*overlaps, *double]
    evidence = f"{count} ownerships recorded by the workers, {polls} descriptions by the server"
    return Check(
        "no partition had two owners",
        not found and count > 0 and polls > 0,
        "; ".join(found) or evidence,
    )


def check_commits(outage: Outage) -> Check:
    """Every acknowledged commit is still there after the kill."""
    missing = [
        f"{group_id}: partition {partition} was acknowledged at {offset}, found "
        f"{outage.found.get(group_id, {}).get(partition)}"
        for group_id, offsets in outage.committed.items()
        for partition, offset in offsets.items()
        if outage.found.get(group_id, {}).get(partition, -1) < offset
    ]
    if not outage.audit_acknowledged <= outage.audit_found <= outage.audit_attempted:
        missing.append(
            f"audit: {outage.audit_acknowledged} was acknowledged and {outage.audit_attempted} "
            f"attempted, found {outage.audit_found}"
        )
    evidence = (
        f"{outage.commits + outage.audit_acknowledged} offsets acknowledged before it, "
        f"{outage.audit_acknowledged} of them in a group with a single committer: "
        f"found {outage.audit_found}, attempted {outage.audit_attempted}"
    )
    return Check(
        "every acknowledged commit is there after the kill",
        not missing and outage.commits > 0 and outage.audit_acknowledged > 0,
        "; ".join(missing) or evidence,
    )


def check_restart(outage: Outage) -> Check:
    """The restart changed no epoch and moved no partition."""
    changed = [
        f"{group_id}: {before} became {outage.epochs_after.get(group_id)}"
        for group_id, before in outage.epochs_before.items()
        if outage.epochs_after.get(group_id) != before
    ]
    if outage.moves:
        changed.append(f"{outage.moves} partitions changed hands")
    evidence = f"{len(outage.epochs_before)} groups as before, down for {outage.down_s:.1f} s"
    return Check(
        "the restart changed no epoch and moved no partition",
        not changed and bool(outage.epochs_before),
        "; ".join(changed) or evidence,
    )


def check_converged(changes: Sequence[Change]) -> Check:
    """Every change ended with all members at the target and one owner for each partition."""
    open_ = [change.title for change in changes if change.converged_s is None]
    return Check(
        "every change ended with each partition owned by one member at the target",
        not open_ and bool(changes),
        f"did not: {', '.join(open_)}" if open_ else f"{len(changes)} changes",
    )


def check_workers(failures: Sequence[str], produced: int, failed: int) -> Check:
    """No worker ended unexpectedly, and every record was acknowledged."""
    found = list(failures)
    if failed:
        found.append(f"{failed} records were not acknowledged")
    return Check(
        "no client failed",
        not found and produced > 0,
        "; ".join(found) or f"{produced} records acknowledged, all workers ended when asked",
    )


def render_changes(changes: Sequence[Change]) -> list[str]:
    """How long each change took, in aligned lines."""
    width = max((len(change.title) for change in changes), default=0)
    lines = []
    for change in changes:
        took = "not converged" if change.converged_s is None else f"{change.converged_s:6.2f} s"
        moved = "1 partition" if change.moved == 1 else f"{change.moved} partitions"
        note = f"  ({change.note})" if change.note else ""
        lines.append(f"{change.title:<{width}}  {took}  {moved} assigned{note}")
    return lines
