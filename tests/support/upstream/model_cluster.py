"""``Cluster`` on the simulated cluster, in the loop's time, for tests of the takeover's shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace as Entity
from typing import Any

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from model.ids import GroupId
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.cluster_values import Joined, Synced
from tests.sim.upstream.move_driver import make_view
from upstream.cluster.cluster import ClusterBroker, ClusterUnreachable

_VERSIONS = {key: range(10) for key in (8, 9, 10, 11, 12, 13, 14, 15, 16)}
_STEP_S = 0.01


class ModelLink:
    """A ``BrokerLink``."""

    def __init__(self, cluster: ModelCluster) -> None:
        self._cluster = cluster
        self._waiting: set[asyncio.Task[Any]] = set()
        self.is_closed = False

    async def ask(self, request: ClientRequest, *, timeout_ms: int = 30_000) -> Any:
        """Ask; closing ends it."""
        task = asyncio.ensure_future(
            self._cluster.ask_coordinator("", request, timeout_ms=timeout_ms)
        )
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self.is_closed:
                raise ClusterUnreachable("closed") from None
            raise
        finally:
            self._waiting.discard(task)

    def close(self) -> None:
        """Close."""
        self.is_closed = True
        for task in self._waiting:
            task.cancel()


class ModelCluster:
    """``lose`` says of each request whether it is lost: "before", "after" or not at all."""

    cluster_id = "model"
    controller_id = 1
    is_reachable = True
    offers_consumer_protocol = True

    def __init__(self, model: ClusterModel) -> None:
        self.model = model
        self.versions = _VERSIONS
        self.brokers = {1: ClusterBroker(1, "127.0.0.1", 1)}
        self.lose: Callable[[ClientRequest], str] = lambda request: ""
        self.asked: list[ClientRequest] = []
        self.links: list[ModelLink] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let time pass for the cluster."""
        self._task = asyncio.get_running_loop().create_task(self._pass_time())

    async def stop(self) -> None:
        """The end."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _pass_time(self) -> None:
        loop = asyncio.get_running_loop()
        began_ms = self.model.now_ms - int(loop.time() * 1_000)
        while True:
            await asyncio.sleep(_STEP_S)
            self.model.advance(began_ms + int(loop.time() * 1_000))

    def on_brokers_changed(self, callback: Callable[[], None]) -> None:
        """The brokers stay."""

    async def find_coordinator(
        self, group_id: str, *, again: bool = False, timeout_ms: int = 30_000
    ) -> int:
        return 1

    async def open_link(self, node_id: int) -> ModelLink:
        link = ModelLink(self)
        self.links.append(link)
        return link

    async def open_raw(self, node_id: int | None) -> Any:
        raise ClusterUnreachable("nothing is passed on")

    async def ask(
        self, request: ClientRequest, *, node_id: int | None = None, timeout_ms: int = 30_000
    ) -> Any:
        return await self.ask_coordinator("", request, timeout_ms=timeout_ms)

    async def ask_coordinator(
        self, group_id: str, request: ClientRequest, *, timeout_ms: int = 30_000
    ) -> Any:
        self.asked.append(request)
        await asyncio.sleep(0)
        lost = self.lose(request)
        if lost == "before":
            raise ClusterUnreachable("lost")
        answer = await self._answer(request)
        if lost == "after":
            raise ClusterUnreachable("lost")
        return answer

    async def _answer(self, request: ClientRequest) -> Any:
        fields: Any = request.fields
        match request.key:
            case 8:
                return self._commit(fields)
            case 9:
                return self._fetch(fields)
            case 11:
                return await self._join(fields)
            case 12:
                code = self.model.heartbeat(
                    fields["group_id"],
                    fields["member_id"],
                    fields["group_instance_id"],
                    fields["generation_id"],
                )
                return Entity(error_code=code)
            case 13:
                return self._leave(fields)
            case 14:
                return await self._sync(fields)
            case 15:
                return Entity(groups=tuple(map(self._describe, fields["groups"])))
            case 16:
                return Entity(groups=tuple(Entity(group_id=name) for name in self.model.groups))
            case _:
                raise AssertionError(request)

    async def _join(self, fields: Any) -> Any:
        waiting: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        self.model.join(
            fields["group_id"],
            fields["member_id"],
            fields["group_instance_id"],
            "muster",
            {row["name"]: row["metadata"] for row in fields["protocols"]},
            lambda joined: None if waiting.done() else waiting.set_result(joined),
            fields["session_timeout"],
            fields["rebalance_timeout"],
        )
        joined = await waiting
        return Entity(
            error_code=joined.code,
            member_id=joined.member_id,
            generation_id=joined.generation,
            protocol_name=joined.protocol,
            leader=joined.leader,
            skip_assignment=joined.skip_assignment,
            members=tuple(Entity(member_id=name) for name, _ in joined.members),
        )

    async def _sync(self, fields: Any) -> Any:
        waiting: asyncio.Future[Synced] = asyncio.get_running_loop().create_future()
        self.model.sync(
            fields["group_id"],
            fields["member_id"],
            fields["group_instance_id"],
            fields["generation_id"],
            {row["member_id"]: row["assignment"] for row in fields["assignments"]},
            lambda synced: None if waiting.done() else waiting.set_result(synced),
        )
        return Entity(error_code=(await waiting).code)

    def _leave(self, fields: Any) -> Any:
        rows = [(row["member_id"], row["group_instance_id"]) for row in fields["members"]]
        codes = self.model.leave(fields["group_id"], rows)
        members = tuple(Entity(error_code=code) for code in codes)
        return Entity(error_code=ErrorCode.NONE, members=members)

    def _describe(self, group_id: str) -> Any:
        view = make_view(self.model, group_id)
        return Entity(
            error_code=view.error,
            group_id=GroupId(group_id),
            group_state=view.state,
            protocol_type=view.protocol_type,
            protocol_data=view.protocol,
            members=tuple(
                Entity(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.host,
                    member_metadata=member.metadata,
                    member_assignment=member.assignment,
                )
                for member in view.members
            ),
        )

    def _commit(self, fields: Any) -> Any:
        offsets = {
            (topic["name"], row["partition_index"]): row["committed_offset"]
            for topic in fields["topics"]
            for row in topic["partitions"]
        }
        code = self.model.commit(
            fields["group_id"],
            fields["member_id"],
            fields["group_instance_id"],
            fields["generation_id_or_member_epoch"],
            offsets,
        )
        return Entity(
            topics=tuple(
                Entity(
                    name=topic["name"],
                    partitions=tuple(
                        Entity(partition_index=row["partition_index"], error_code=code)
                        for row in topic["partitions"]
                    ),
                )
                for topic in fields["topics"]
            )
        )

    def _fetch(self, fields: Any) -> Any:
        offsets = self.model.group(fields["group_id"]).offsets
        return Entity(
            error_code=ErrorCode.NONE,
            topics=tuple(
                Entity(
                    name=topic["name"],
                    partitions=tuple(
                        Entity(
                            partition_index=number,
                            committed_offset=offsets.get((topic["name"], number), -1),
                            committed_leader_epoch=-1,
                            metadata="",
                            error_code=ErrorCode.NONE,
                        )
                        for number in topic["partition_indexes"]
                    ),
                )
                for topic in fields["topics"]
            ),
        )
