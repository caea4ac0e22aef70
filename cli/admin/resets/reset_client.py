"""The calls of `muster group reset`, `seek` and `undo`; errors are raised as ``CommandError``s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cli.errors import CommandError, ExitCode
from cli.server_calls import ServerCalls, open_calls
from muster.v1 import reset_pb2, reset_pb2_grpc

PAUSE_S: Final = 0.1
"""Between two looks at a reset that goes on."""
PAGE_MAX: Final = 1_000
"""Changes of offsets that are asked for at a time."""


class ResetClient:
    """One connection to a server, and one deadline for each call."""

    def __init__(self, calls: ServerCalls) -> None:
        self._call, self._timeout_s = calls.call, calls.timeout_s
        self._stub = reset_pb2_grpc.ResetServiceStub(calls.channel)

    def reset_offsets(
        self, request: reset_pb2.ResetOffsetsRequest
    ) -> reset_pb2.ResetOffsetsResponse:
        """Set offsets, or with ``validate_only`` compute them."""
        return self._call(self._stub.ResetOffsets, request)

    def list_changes(self, group_id: str) -> tuple[list[reset_pb2.OffsetChange], int | None]:
        """The changes of a group's offsets, and since when they are known; ``None`` for all."""
        request = reset_pb2.ListOffsetChangesRequest(group_id=group_id, page_size=PAGE_MAX)
        found: list[reset_pb2.OffsetChange] = []
        while True:
            answer = self._call(self._stub.ListOffsetChanges, request)
            found.extend(answer.changes)
            request.page_token = answer.next_page_token
            if not request.page_token:
                return found, answer.since_ms if answer.HasField("since_ms") else None

    def wait_until_set(self, group_id: str, group_epoch: int) -> None:
        """Wait until the reset with this group epoch is done.

        Raises ``CommandError`` if it is late, or was given up with its group. A server that
        restarts goes on with the reset, and is waited for.
        """
        end_s = time.monotonic() + self._timeout_s
        while True:
            try:
                found = self._look(group_id)
            except CommandError as error:
                if error.exit_code is not ExitCode.UNREACHABLE:
                    raise
                if time.monotonic() > end_s:
                    raise CommandError(
                        f"the reset of {group_id} has begun, and the server goes on with it; how "
                        f"far it is is not known: {error.message}",
                        ExitCode.UNREACHABLE,
                    ) from error
                time.sleep(PAUSE_S)
                continue
            if found.group_epoch < group_epoch:
                raise CommandError(
                    f"the reset of {group_id} was given up: the group was removed, or became a "
                    "classic group; its offsets are as they were",
                    ExitCode.PRECONDITION,
                )
            if found.done or found.group_epoch > group_epoch:
                return
            if time.monotonic() > end_s:
                owners = ", ".join(
                    f"{each.member_id} ({each.client_id or '-'} on {each.client_host or '-'})"
                    for each in found.waits_for
                )
                raise CommandError(
                    f"the reset of {group_id} goes on: {owners or 'nobody'} has to give partitions "
                    "up, or is removed at its rebalance timeout",
                    ExitCode.UNREACHABLE,
                )
            time.sleep(PAUSE_S)

    def _look(self, group_id: str) -> reset_pb2.GetResetResponse:
        """How far the last reset of the group is; as if there was none, if the group is gone."""
        try:
            return self._call(self._stub.GetReset, reset_pb2.GetResetRequest(group_id=group_id))
        except CommandError as error:
            if error.exit_code is ExitCode.NOT_FOUND:
                return reset_pb2.GetResetResponse()
            raise


@contextmanager
def connect_for_resets(
    server: str, timeout_s: float, command_config: Path | None
) -> Iterator[ResetClient]:
    """Connect to the server at ``HOST:PORT``: see ``open_calls``."""
    with open_calls(server, timeout_s, command_config) as calls:
        yield ResetClient(calls)
