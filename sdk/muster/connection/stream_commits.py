"""Commits that were sent on the session stream, until the server answers or the stream breaks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import TypeAlias

from muster.connection.stream import Stream
from muster.v1 import group_pb2, types_pb2

_Answer: TypeAlias = "asyncio.Future[group_pb2.CommitResult | None]"


class StreamCommits:
    """Matches commits and their results by correlation id."""

    __slots__ = ("_answers", "_correlation_ids")

    def __init__(self) -> None:
        self._answers: dict[int, _Answer] = {}
        self._correlation_ids = itertools.count(1)

    async def send(
        self,
        stream: Stream,
        group_id: str,
        member_id: str,
        member_epoch: int,
        topics: Sequence[types_pb2.TopicOffsets],
    ) -> group_pb2.CommitResult | None:
        """Commit; returns ``None`` if the stream breaks before the answer."""
        correlation_id = next(self._correlation_ids)
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._answers[correlation_id] = answer
        commit = group_pb2.Commit(
            correlation_id=correlation_id,
            member_epoch=member_epoch,
            topics=topics,
        )
        stream.send(group_pb2.MemberAction(group_id=group_id, member_id=member_id, commit=commit))
        try:
            return await answer
        finally:
            self._answers.pop(correlation_id, None)

    def on_result(self, result: group_pb2.CommitResult) -> None:
        """The server has answered a commit."""
        answer = self._answers.get(result.correlation_id)
        if answer is not None and not answer.done():
            answer.set_result(result)

    def on_stream_lost(self) -> None:
        """No answer will come: whether the commits took effect is unknown."""
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(None)
