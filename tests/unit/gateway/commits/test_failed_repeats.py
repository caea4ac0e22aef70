"""A repeated commit whose offsets are kept elsewhere is answered with the error that it got."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, cast

import pytest

from coordinator.runtime.api import CommitTicket, Release
from gateway.api import ClientConnection
from gateway.commits.commit_templates import CommitRowsTemplate, CommitTemplate
from gateway.commits.offset_commit_wire import encode_commit_response
from model.errors import ErrorCode
from model.log.commit_records import OffsetColumns
from model.responses.offsets import PartitionResult, TopicResult
from tests.support.gateway.wire_rig import topic_id_of
from tests.support.gateway.wire_steps import COMMIT, commit_topics
from tests.unit.gateway.commits.test_wire_commit_templates import request_of

NAME = "t"


class FailingTicket:
    """Takes all commits, and fails them later."""

    def __init__(self) -> None:
        self.releases: list[Release] = []

    def permits(self, partition: int) -> bool:
        return True

    def commit(self, offsets: OffsetColumns, monotonic_ms: int, release: Release) -> bool:
        self.releases.append(release)
        return True

    def name_partitions(self, partitions: Any) -> list[bytes]:
        return [b""] * len(partitions)


class Client:
    """Counts when answers may leave."""

    sent = 0

    def send_answered(self) -> None:
        self.sent += 1


def result_of(partitions: Sequence[int], code: ErrorCode) -> TopicResult:
    rows = tuple(PartitionResult(number, code) for number in partitions)
    return TopicResult(cast(Any, NAME), cast(Any, topic_id_of(NAME)), rows)


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("version", [8, 9, 10])
def test_all_partitions_have_the_error(version: int, count: int, code: ErrorCode) -> None:
    partitions = range(3, 3 + count)
    topics = commit_topics(version, NAME, dict.fromkeys(partitions, (5, "")))
    frame = request_of(COMMIT, version, 77, group_id="g", topics=topics)
    kind = CommitTemplate if count == 1 else CommitRowsTemplate
    ticket, client = FailingTicket(), Client()
    template = kind(
        version, frame[12:], result_of(partitions, ErrorCode.NONE), cast(CommitTicket, ticket)
    )
    pending = template.serve(cast(ClientConnection, client), frame, 1.0)
    assert pending is not None
    assert not pending.answered
    (release,) = ticket.releases
    release(code) if code else release()
    body = b"\x00" + encode_commit_response((result_of(partitions, code),), version)
    assert pending.frame == struct.pack(">ii", 4 + len(body), 77) + body
    assert (pending.answered, client.sent) == (True, 1)
