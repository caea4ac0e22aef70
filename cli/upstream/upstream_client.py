"""The calls of `muster upstream`; errors are raised as one-line ``CommandError``s."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cli.server_calls import ServerCalls, open_calls
from muster.v1 import upstream_pb2, upstream_pb2_grpc

_PAGE = 1_000


class UpstreamClient:
    """One connection to a server, and one deadline for each call."""

    def __init__(self, calls: ServerCalls) -> None:
        self._ask, self._follow = calls.call, calls.follow
        self._stub = upstream_pb2_grpc.UpstreamServiceStub(calls.channel)

    def get_upstream(self) -> upstream_pb2.GetUpstreamResponse:
        """The cluster."""
        return self._ask(self._stub.GetUpstream, upstream_pb2.GetUpstreamRequest())

    def list_groups(self, places: Collection[int] = ()) -> list[upstream_pb2.UpstreamGroup]:
        """All groups in these places, by id; all groups without places."""
        found: list[upstream_pb2.UpstreamGroup] = []
        token = ""
        while True:
            request = upstream_pb2.ListUpstreamGroupsRequest(page_size=_PAGE, page_token=token)
            request.places.extend(places)  # type: ignore[arg-type]  # numbers
            response = self._ask(self._stub.ListUpstreamGroups, request)
            found.extend(response.groups)
            token = response.next_page_token
            if not token:
                return found

    def take(
        self, group_ids: Sequence[str], pattern: str, *, dry_run: bool
    ) -> Iterator[upstream_pb2.GroupReport]:
        """Take groups over; a report for each as it comes."""
        request = upstream_pb2.TakeGroupsRequest(
            group_ids=group_ids, pattern=pattern, dry_run=dry_run
        )
        return self._follow(self._stub.TakeGroups, request)

    def release(
        self, group_ids: Sequence[str], *, means_all: bool, dry_run: bool
    ) -> Iterator[upstream_pb2.GroupReport]:
        """Give groups back; a report for each as it comes."""
        request = upstream_pb2.ReleaseGroupsRequest(
            group_ids=group_ids, all=means_all, dry_run=dry_run
        )
        return self._follow(self._stub.ReleaseGroups, request)


@contextmanager
def connect_upstream(
    server: str, timeout_s: float, command_config: Path | None
) -> Iterator[UpstreamClient]:
    """Connect to the server at ``HOST:PORT``: see ``open_calls``."""
    with open_calls(server, timeout_s, command_config) as calls:
        yield UpstreamClient(calls)
