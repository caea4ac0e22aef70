"""The calls of `muster group freeze` and `resume`; errors are raised as ``CommandError``s."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.server_calls import ServerCalls, open_calls
from muster.v1 import freeze_pb2, freeze_pb2_grpc


class FreezeClient:
    """One connection to a server, and one deadline for each call."""

    def __init__(self, calls: ServerCalls) -> None:
        self._call = calls.call
        self._stub = freeze_pb2_grpc.FreezeServiceStub(calls.channel)

    def freeze(self, group_id: str, validate_only: bool) -> freeze_pb2.FreezeGroupResponse:
        """Freeze a group, or tell what it would be frozen with."""
        request = freeze_pb2.FreezeGroupRequest(
            group_id=group_id, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        return self._call(self._stub.FreezeGroup, request)

    def resume(self, group_id: str, validate_only: bool) -> freeze_pb2.ResumeGroupResponse:
        """Resume a group, or tell what would move."""
        request = freeze_pb2.ResumeGroupRequest(
            group_id=group_id, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        return self._call(self._stub.ResumeGroup, request)


@contextmanager
def connect_for_freezes(
    server: str, timeout_s: float, command_config: Path | None
) -> Iterator[FreezeClient]:
    """Connect to the server at ``HOST:PORT``: see ``open_calls``."""
    with open_calls(server, timeout_s, command_config) as calls:
        yield FreezeClient(calls)
