"""What would happen to a group, as messages."""

from __future__ import annotations

from coordinator.service.calls.access import Access
from coordinator.service.wire.answer_slices import make_rows, run_steps
from model.access.acls import Operation
from model.caller import Caller
from model.what_if import Load, Move, WhatIfAnswer
from muster.v1 import what_if_pb2


async def encode_answer(
    answer: WhatIfAnswer, caller: Caller, access: Access
) -> what_if_pb2.WhatIfResponse:
    """The answer, encoded in slices. Raises if the caller may not see a topic that would move."""
    moved = dict.fromkeys(move.topic_name for move in answer.moves)
    access.check_topics(caller, Operation.DESCRIBE, moved)
    response = what_if_pb2.WhatIfResponse(
        assignor=answer.assignor,
        epochs=answer.epochs,
        rounds=answer.rounds,
        waits_for=answer.waits_for,
        truncated=not answer.is_complete,
    )
    await run_steps(make_rows(response.moves.extend, encode_move, answer.moves))
    await run_steps(make_rows(response.members.extend, _encode_load, answer.loads))
    return response


def encode_move(move: Move) -> what_if_pb2.PartitionMove:
    """A partition that gets another owner."""
    return what_if_pb2.PartitionMove(
        topic_name=move.topic_name,
        partition=move.partition,
        from_member_id=move.source or "",
        to_member_id=move.destination or "",
    )


def _encode_load(load: Load) -> what_if_pb2.MemberLoad:
    return what_if_pb2.MemberLoad(
        member_id=load.member_id,
        instance_id=load.instance_id or "",
        client_id=load.client_id,
        partitions_before=load.before,
        partitions_after=load.after,
    )
