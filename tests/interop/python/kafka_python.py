"""A member with kafka-python's KafkaConsumer, which polls until it is told to close.

It takes commands when a poll has brought records, and `close` at once.
"""

from __future__ import annotations

import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError, RetriableError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.interop.python.program import (
    Options,
    Printer,
    compute_name,
    read_commands,
    read_options,
    take,
)
from tests.interop.security import OAUTHBEARER, Security

RETRY_S = 0.1
ENDLESS_MS = 24 * 3_600_000
STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):
    """Tells what is assigned and what is taken away."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    def on_partitions_assigned(self, assigned: Iterable[object]) -> None:
        self._printer.print_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[object]) -> None:
        self._printer.print_partitions("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[object]) -> None:
        self._printer.print_partitions("lost", lost)


class FileToken(AbstractTokenProvider):
    """Gives the token that is in the file now."""

    def __init__(self, security: Security) -> None:
        super().__init__()
        self._security = security

    def token(self) -> str:
        return self._security.read_token()


def compute_security(security: Security) -> dict[str, Any]:
    settings: dict[str, Any] = {"security_protocol": security.protocol}
    if security.ca:
        settings["ssl_cafile"] = security.ca
    if security.certificate:
        settings |= {"ssl_certfile": security.certificate, "ssl_keyfile": security.certificate}
    if not security.mechanism:
        return settings
    settings["sasl_mechanism"] = security.mechanism
    if security.mechanism == OAUTHBEARER:
        settings["sasl_oauth_token_provider"] = FileToken(security)
    else:
        settings["sasl_plain_username"] = security.user
        settings["sasl_plain_password"] = security.password
    return settings


def make_consumer(options: Options) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.client_id,
        group_instance_id=options.instance_id or None,
        session_timeout_ms=options.session_ms,
        heartbeat_interval_ms=options.heartbeat_ms,
        partition_assignment_strategy=[STRATEGIES[name] for name in options.strategies],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        reconnect_backoff_max_ms=1_000,
        **compute_security(options.security),
    )


class Interrupt:
    """Ends the poll that is under way when the command to close comes.

    A poll is else endless. One that ends while its member joins breaks kafka-python 3.0.12: the
    answer to the join, where it comes between two polls, is thrown away and the member joins again,
    or nobody takes it, and the member heartbeats no more.
    """

    def __init__(self) -> None:
        self._is_polling = False
        signal.signal(signal.SIGINT, self._on_signal)

    def send(self) -> None:
        """From another thread, when the command is there."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def poll(self, consumer: KafkaConsumer, commands: queue.SimpleQueue[str]) -> Any:
        """The records that came, by partition; none where a command is there."""
        try:
            self._is_polling = True
            return consumer.poll(timeout_ms=ENDLESS_MS) if commands.empty() else {}
        except KeyboardInterrupt:
            return {}
        finally:
            self._is_polling = False

    def _on_signal(self, *_: object) -> None:
        if self._is_polling:
            raise KeyboardInterrupt


def process(found: Any, consumer: KafkaConsumer, printer: Printer) -> None:
    """Commits at once what was read."""
    if not found:
        return
    printer.print_found(found)
    try:
        consumer.commit()
        printer.print("committed")
    except KafkaError as error:
        printer.print_error("commit-failed", error)


def main() -> int:
    options, printer = read_options(), Printer()
    logging.basicConfig(level=logging.WARNING)
    try:
        return run(options, printer)
    except KafkaError as error:
        printer.print_error("failed", error)
        return 1


def run(options: Options, printer: Printer) -> int:
    interrupt = Interrupt()
    commands = read_commands(on_close=interrupt.send)
    consumer = make_consumer(options)
    consumer.subscribe(options.topics, listener=Listener(printer))
    # The first metadata after the subscription is to come before the member joins: coming later it
    # is a change, for which the leader joins again.
    consumer.topics()
    printer.print("started")
    while (command := take(commands)) != "close":
        if command == "committed":
            held = consumer.assignment()
            offsets = {compute_name(each): consumer.committed(each) for each in held}
            printer.print("fetched", offsets=offsets)
        try:
            process(interrupt.poll(consumer, commands), consumer, printer)
        except RetriableError as error:
            # Of a server that is down, which poll tells where it meets it.
            printer.print_error("complained", error)
            time.sleep(RETRY_S)
    consumer.close()
    printer.print("closed", total=printer.total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
