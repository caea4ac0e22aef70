"""What a load test over gRPC needs before it begins: its topic."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cli.admin_client import connect
from cli.errors import CommandError, ExitCode
from cli.load.options.plan import Plan
from cli.load.processes.cluster import Ground


async def prepare_sessions(plan: Plan, partitions: int | None) -> Ground:
    """Create the topic if it lacks. Raises ``CommandError``."""
    return await asyncio.to_thread(_prepare, plan, partitions)


async def delete_session_groups(plan: Plan, group_ids: Sequence[str]) -> None:
    """Delete the groups with their offsets, where that is possible; nothing is raised."""
    await asyncio.to_thread(_delete, plan, group_ids)


def _delete(plan: Plan, group_ids: Sequence[str]) -> None:
    with connect(plan.address, plan.timeout_s, plan.security) as client:
        for group_id in group_ids:
            try:
                client.delete_group(group_id, validate_only=False)
            except CommandError as error:
                if error.exit_code is ExitCode.UNREACHABLE:
                    return


def _prepare(plan: Plan, partitions: int | None) -> Ground:
    with connect(plan.address, plan.timeout_s, plan.security) as client:
        found = {topic.topic_name: topic for topic in client.list_topics()}.get(plan.topic)
        if found is None:
            found = client.create_topic(plan.topic, partitions or plan.partitions, False)
        if partitions is not None and found.num_partitions != partitions:
            raise CommandError(
                f"topic {plan.topic} has {found.num_partitions} partitions, not {partitions}: "
                "leave --partitions out, or name another --topic",
                ExitCode.PRECONDITION,
            )
        return Ground(found.topic_id, found.num_partitions, (plan.address,) * plan.groups)
