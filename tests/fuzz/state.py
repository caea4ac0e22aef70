"""All that a server says of its groups, to compare before and after a restart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from gateway.codec.kio_schema import compute_fields
from tests.support.wire.blocking import Client

_DESCRIBE, _LIST, _CONSUMER_DESCRIBE = 15, 16, 69
_UNSETTLED = ("PreparingRebalance", "CompletingRebalance", "Dead")
"""States of a classic group that are in no record."""


def _plain(entity: Any, leave_out: Iterable[str] = ()) -> Any:
    """An entity as a dict; arrays without their order, which is no part of the state."""
    if isinstance(entity, tuple):
        return sorted((_plain(item, leave_out) for item in entity), key=repr)
    if not hasattr(entity, "__dataclass_fields__"):
        return entity
    rows = compute_fields(cast(Any, type(entity)))
    return {
        row.name: _plain(getattr(entity, row.name), leave_out)
        for row in rows
        if row.name not in leave_out
    }


def read_state(address: tuple[str, int]) -> dict[str, Any]:
    """Each group by id: its description as its type has it, and its offsets."""
    client = Client(address)
    try:
        listed = client.ask(_LIST, 5, states_filter=(), types_filter=()).groups
        return {group.group_id: _read_group(client, group) for group in listed}
    finally:
        client.close()


def _read_group(client: Client, group: Any) -> dict[str, Any]:
    state: dict[str, Any] = {"type": group.group_type, "offsets": client.offsets(group.group_id)}
    if group.group_type == "consumer":
        answer = client.ask(_CONSUMER_DESCRIBE, 1, group_ids=(group.group_id,))
        state["group"] = _plain(answer.groups[0], ("authorized_operations",))
    else:
        answer = client.ask(_DESCRIBE, 6, groups=(group.group_id,))
        described = answer.groups[0]
        if described.group_state not in _UNSETTLED:
            state["group"] = _plain(described, ("authorized_operations",))
    return state


def find_differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each group that is not as it was; one that was unsettled has its offsets."""
    found = []
    for group_id in sorted(before.keys() | after.keys()):
        old, new = before.get(group_id), after.get(group_id)
        if old is None or new is None:
            if _is_of_records(old or new or {}):
                found.append(f"{group_id!r}: {old} before, {new} after")
            continue
        for name in old.keys() & new.keys():
            found += [f"{group_id!r}: {line}" for line in compare(name, old[name], new[name])]
    return found


def _is_of_records(state: dict[str, Any]) -> bool:
    """Not so a classic group that somebody asked to join and nobody has: it is in no record."""
    group = state.get("group")
    return bool(state["offsets"]) or (group is not None and group.get("protocol_type") != "")


def compare(path: str, old: Any, new: Any) -> list[str]:
    """Where two trees differ, a line for each place."""
    if old == new:
        return []
    if type(old) is dict and type(new) is dict and old.keys() == new.keys():
        return [line for key in old for line in compare(f"{path}.{key}", old[key], new[key])]
    if type(old) is list and type(new) is list and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for number, pair in pairs for line in compare(f"{path}[{number}]", *pair)]
    return [f"{path}: {old} before, {new} after"]
