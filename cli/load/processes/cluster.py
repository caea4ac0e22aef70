"""What a load test needs of a cluster before it begins: its topic, and its coordinators."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cli.errors import CommandError, ExitCode
from cli.load.options.plan import GroupProtocol, Plan
from cli.load.wire.link import Dialer, Link, RefusedError
from cli.load.wire.messages import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_TOPICS,
    DELETE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_COMMIT,
    SYNC_GROUP,
    MalformedAnswer,
    name_error,
)

_PAUSE_S: Final = 0.1
_TOPIC_ALREADY_EXISTS: Final = 36
_UNKNOWN_TOPIC_OR_PARTITION: Final = 3
_RETRIABLE: Final = (_UNKNOWN_TOPIC_OR_PARTITION, 5, 14, 15, 16)
"""Also LEADER_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
NOT_COORDINATOR: a topic, or the log of groups, is being made."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The topic's id and partitions, and the coordinator (HOST:PORT) of each group."""

    topic_id: bytes
    partitions: int
    coordinators: tuple[str, ...]


async def prepare(plan: Plan, partitions: int | None, group_ids: Sequence[str]) -> Ground:
    """Create the topic if it lacks, and find the coordinators. Raises ``CommandError``."""
    try:
        dialer = Dialer(plan.security, plan.timeout_s)
        link = await dialer.open(plan.address)
        try:
            cluster = _Cluster(link, plan)
            await cluster.check_apis()
            return await cluster.prepare(partitions, group_ids)
        finally:
            link.close()
    except RefusedError as error:
        raise CommandError(f"{plan.address}: {error}") from error
    except (OSError, TimeoutError, MalformedAnswer) as error:
        raise CommandError(
            f"cannot reach {plan.address}: {str(error) or 'no answer in time'}",
            ExitCode.UNREACHABLE,
        ) from error


async def delete_groups(plan: Plan, group_ids: Sequence[str], addresses: Sequence[str]) -> None:
    """Delete the groups with their offsets, where that is possible; nothing is raised."""
    dialer = Dialer(plan.security, plan.timeout_s)
    for address in dict.fromkeys(addresses):
        mine = [g for g, at in zip(group_ids, addresses, strict=True) if at == address]
        try:
            link = await dialer.open(address)
            try:
                await link.ask(DELETE_GROUPS, plan.timeout_s, groups_names=mine)
            finally:
                link.close()
        except (OSError, TimeoutError, RefusedError, MalformedAnswer):
            continue


class _Cluster:
    def __init__(self, link: Link, plan: Plan) -> None:
        self._link = link
        self._plan = plan
        self._deadline = time.monotonic() + plan.timeout_s

    async def check_apis(self) -> None:
        """Raise ``CommandError`` if the server lacks what the plan needs."""
        answer = await self._ask(API_VERSIONS)
        offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        needed = [METADATA, FIND_COORDINATOR, OFFSET_COMMIT]
        if self._plan.protocol is GroupProtocol.CONSUMER and self._plan.members:
            needed.append(CONSUMER_GROUP_HEARTBEAT)
        if self._plan.protocol is GroupProtocol.CLASSIC:
            needed += [JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP]
        for key, version in needed:
            least, most = offered.get(key, (0, -1))
            if not least <= version <= most:
                hint = ": use --protocol classic" if key == CONSUMER_GROUP_HEARTBEAT[0] else ""
                raise CommandError(
                    f"{self._plan.address} has no version {version} of API {key}{hint}",
                    ExitCode.PRECONDITION,
                )

    async def prepare(self, partitions: int | None, group_ids: Sequence[str]) -> Ground:
        """The topic and the coordinators."""
        name = self._plan.topic
        if partitions is not None or not await self._has_topic():
            await self._create_topic(partitions or self._plan.partitions)
        metadata = await self._find_topic()
        topic = metadata.topics[0]
        found = len(topic.partitions)
        if partitions is not None and found != partitions:
            raise CommandError(
                f"topic {name} has {found} partitions, not {partitions}: "
                "leave --partitions out, or name another --topic",
                ExitCode.PRECONDITION,
            )
        if len(metadata.brokers) > 1:
            coordinators = await self._find_coordinators(group_ids)
        else:
            # The one server is reached as it was named, also through a proxy.
            await self._find_coordinators(group_ids)
            coordinators = (self._plan.address,) * len(group_ids)
        return Ground(topic.topic_id, found, coordinators)

    async def _has_topic(self) -> bool:
        metadata = await self._ask_metadata()
        return bool(metadata.topics[0].error_code != _UNKNOWN_TOPIC_OR_PARTITION)

    async def _create_topic(self, partitions: int) -> None:
        wanted = {"name": self._plan.topic, "num_partitions": partitions, "replication_factor": -1}
        answer = _find_only((await self._ask(CREATE_TOPICS, topics=[wanted])).topics)
        if answer.error_code not in (0, _TOPIC_ALREADY_EXISTS):
            message = answer.error_message or name_error(answer.error_code)
            raise RefusedError(
                name_error(answer.error_code),
                f"cannot create topic {self._plan.topic}: {message}",
            )

    async def _find_topic(self) -> Any:
        while True:
            metadata = await self._ask_metadata()
            topic = metadata.topics[0]
            code = topic.error_code or next(
                (each.error_code for each in topic.partitions if each.error_code), 0
            )
            if not code:
                return metadata
            await self._pause(f"topic {self._plan.topic}", code)

    async def _find_coordinators(self, group_ids: Sequence[str]) -> tuple[str, ...]:
        while True:
            answer = await self._ask(FIND_COORDINATOR, coordinator_keys=tuple(group_ids))
            code = next((each.error_code for each in answer.coordinators if each.error_code), 0)
            if not code:
                found = {each.key: f"{each.host}:{each.port}" for each in answer.coordinators}
                if not found.keys() >= set(group_ids):
                    raise MalformedAnswer("it does not name the coordinators of all groups")
                return tuple(found[group_id] for group_id in group_ids)
            await self._pause("the groups' coordinator", code)

    async def _ask_metadata(self) -> Any:
        answer = await self._ask(
            METADATA,
            topics=[{"topic_id": None, "name": self._plan.topic}],
            allow_auto_topic_creation=False,
        )
        _find_only(answer.topics)
        return answer

    async def _ask(self, api: tuple[int, int], **fields: Any) -> Any:
        return await self._link.ask(api, self._plan.timeout_s, **fields)

    async def _pause(self, what: str, code: int) -> None:
        if code not in _RETRIABLE or time.monotonic() > self._deadline:
            raise RefusedError(name_error(code), f"{what}: {name_error(code)}")
        await asyncio.sleep(_PAUSE_S)


def _find_only(topics: Sequence[Any] | None) -> Any:
    """The one topic of an answer about one topic. Raises ``MalformedAnswer``."""
    if topics is None or len(topics) != 1:
        raise MalformedAnswer("it does not answer about the topic that was named")
    return topics[0]
