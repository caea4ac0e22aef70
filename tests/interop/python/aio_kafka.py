"""A member with aiokafka's AIOKafkaConsumer, which polls until it is told to close."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.abc import AbstractTokenProvider
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError
from aiokafka.helpers import create_ssl_context

from tests.interop.python.program import (
    Options,
    Printer,
    compute_name,
    read_commands,
    read_options,
    take,
)
from tests.interop.security import OAUTHBEARER, Security

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):
    """Tells what is assigned and what is taken away."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    async def on_partitions_assigned(self, assigned: Iterable[object]) -> None:
        self._printer.print_partitions("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Iterable[object]) -> None:
        self._printer.print_partitions("revoked", revoked)


class FileToken(AbstractTokenProvider):
    """Gives the token that is in the file now."""

    def __init__(self, security: Security) -> None:
        self._security = security

    async def token(self) -> str:
        return self._security.read_token()


def compute_security(security: Security) -> dict[str, Any]:
    settings: dict[str, Any] = {"security_protocol": security.protocol}
    if security.ca:
        certificate = security.certificate or None
        settings["ssl_context"] = create_ssl_context(
            cafile=security.ca, certfile=certificate, keyfile=certificate
        )
    if not security.mechanism:
        return settings
    settings["sasl_mechanism"] = security.mechanism
    if security.mechanism == OAUTHBEARER:
        settings["sasl_oauth_token_provider"] = FileToken(security)
    else:
        settings["sasl_plain_username"] = security.user
        settings["sasl_plain_password"] = security.password
    return settings


def make_consumer(options: Options) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.client_id,
        group_instance_id=options.instance_id or None,
        session_timeout_ms=options.session_ms,
        heartbeat_interval_ms=options.heartbeat_ms,
        partition_assignment_strategy=[STRATEGIES[name] for name in options.strategies],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **compute_security(options.security),
    )


async def poll(consumer: AIOKafkaConsumer, printer: Printer) -> None:
    """Polls once, and commits at once what was read."""
    found = await consumer.getmany(timeout_ms=100)
    if not found:
        return
    printer.print_found(found)
    try:
        await consumer.commit()
        printer.print("committed")
    except KafkaError as error:
        printer.print_error("commit-failed", error)


async def run() -> int:
    options, printer, commands = read_options(), Printer(), read_commands()
    consumer = make_consumer(options)
    consumer.subscribe(options.topics, listener=Listener(printer))
    try:
        await consumer.start()
        printer.print("started")
        while (command := take(commands)) != "close":
            if command == "committed":
                held = consumer.assignment()
                offsets = {compute_name(each): await consumer.committed(each) for each in held}
                printer.print("fetched", offsets=offsets)
            await poll(consumer, printer)
    except KafkaError as error:
        printer.print_error("failed", error)
        return 1
    finally:
        await consumer.stop()
    printer.print("closed", total=printer.total)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
