"""How a right that Muster's own identity lacks is said."""

from __future__ import annotations

import pytest

from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from upstream.rights.needed_rights import NeededRight, describe_missing, describe_refusal


@pytest.mark.parametrize(
    ("code", "option"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "--operation Read --group x)"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "--operation Read --topic x)"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "--operation Describe --cluster)"),
        (ErrorCode.UNKNOWN_MEMBER_ID, None),
        (12_345, None),
    ],
)
def test_which_right_a_refusal_is_about(code: int, option: str | None) -> None:
    said = describe_refusal("User:muster", code, "x")
    if option is None:
        assert said is None
    else:
        assert said is not None
        assert said.endswith(option)


def test_the_command_that_gives_it_is_named() -> None:
    right = NeededRight(Operation.READ, ResourceType.TOPIC, "orders")
    assert describe_missing("User:muster", right) == (
        "the cluster refuses User:muster, which is Muster: it needs READ on topic orders "
        "(kafka-acls --add --allow-principal User:muster --operation Read --topic orders)"
    )
