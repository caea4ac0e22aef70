"""Which rights of Muster's own a takeover lacks, by what the cluster tells, and how it is said."""

from __future__ import annotations

import pytest

from model.acls import Operation, ResourceType
from model.errors import ErrorCode
from upstream.rights.needed_rights import (
    NeededRight,
    compute_missing,
    compute_needed,
    describe_missing,
    find_refused_right,
)

READ, DESCRIBE = 1 << 3, 1 << 8
NOT_TOLD = -(2**31)


@pytest.mark.parametrize(
    ("group", "topics", "missing"),
    [
        (READ | DESCRIBE, {"a": READ | DESCRIBE, "b": READ | DESCRIBE}, ()),
        (DESCRIBE, {"a": READ | DESCRIBE, "b": READ | DESCRIBE}, (("READ", "g"),)),
        (READ, {"a": DESCRIBE, "b": 0}, (("READ", "a"), ("DESCRIBE", "b"), ("READ", "b"))),
        (NOT_TOLD, {"a": NOT_TOLD}, ()),
        (0, {}, (("READ", "g"),)),
    ],
)
def test_what_is_missing(
    group: int, topics: dict[str, int], missing: tuple[tuple[str, str], ...]
) -> None:
    found = compute_missing(compute_needed("g", ("b", "a", "b")), group, topics)
    assert tuple((right.operation.value, right.name) for right in found) == missing


@pytest.mark.parametrize(
    ("code", "right"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, ("READ", "GROUP", "x")),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ("READ", "TOPIC", "x")),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ("DESCRIBE", "CLUSTER", "kafka-cluster")),
        (ErrorCode.UNKNOWN_MEMBER_ID, None),
        (12_345, None),
    ],
)
def test_which_right_a_refusal_is_about(code: int, right: tuple[str, str, str] | None) -> None:
    found = find_refused_right(code, "x")
    told = found and (found.operation.value, found.resource_type.value, found.name)
    assert told == right


def test_the_command_that_gives_it_is_named() -> None:
    right = NeededRight(Operation.READ, ResourceType.TOPIC, "orders")
    assert describe_missing("User:muster", right) == (
        "the cluster refuses User:muster, which is Muster: it needs READ on topic orders "
        "(kafka-acls --add --allow-principal User:muster --operation Read --topic orders)"
    )
