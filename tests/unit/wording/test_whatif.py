"""What a change would do, in lines that stay readable however large the group is."""

from __future__ import annotations

from muster.v1 import what_if_pb2
from wording.whatif import NAMED_MAX, compute_summary


def test_a_line_names_a_few_of_very_many_members() -> None:
    ids = [f"member-{number:05}" for number in range(10_000)]
    found = what_if_pb2.WhatIfResponse(
        members=[what_if_pb2.MemberLoad(member_id=each, partitions_after=0) for each in ids],
        waits_for=ids[: NAMED_MAX + 1],
    )
    summary = compute_summary("g", found)
    assert f"idle: {', '.join(ids[:NAMED_MAX])} and 9980 more" in summary
    assert f"waits for {', '.join(ids[:NAMED_MAX])} and 1 more, away and still an owner" in summary
    del found.members[NAMED_MAX:], found.waits_for[2:]
    summary = compute_summary("g", found)
    assert f"idle: {', '.join(ids[:NAMED_MAX])}" in summary
    assert "waits for member-00000, member-00001, away and still an owner" in summary
