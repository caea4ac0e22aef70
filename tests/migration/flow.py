"""Messages that flow while a group is converted, and what its members say of whose they were."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition

from tests.interop.classic_clients import WITHIN_S, Member
from tests.migration import check_logs
from tests.server import MusterServer
from tests.support.waiting import wait_until

_PAUSE_S = 0.1


class Flow:
    """A message to each partition every `pause_s`, and a look at what is committed.

    A context manager: leaving it ends the flow. `count` is how many each partition has; `backward`
    lists each committed offset that was seen below an earlier one.
    """

    def __init__(
        self,
        server: MusterServer,
        group: str,
        topic: str,
        partitions: int,
        pause_s: float = _PAUSE_S,
    ) -> None:
        self._pause_s = pause_s
        self.count = 0
        self.backward: list[str] = []
        self.committed = [OFFSET_INVALID] * partitions
        self._topic = topic
        self._asked = [TopicPartition(topic, number) for number in range(partitions)]
        # Whoever uses this may kill the server, which is no news for standard error.
        common = {"bootstrap.servers": server.kafka, "log_level": 0}
        self._producer = Producer({**common, "enable.idempotence": True})
        self._reader = Consumer({**common, "group.id": group})
        self._ending = threading.Event()
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()
        self._reader.close()
        assert not self._failures, self._failures

    def stop_producing(self) -> int:
        """How many messages each partition has got in all."""
        self._ending.set()
        self._thread.join()
        return self.count

    def look(self) -> list[int]:
        """The committed offset of each partition; notes those that went back."""
        found = [each.offset for each in self._reader.committed(self._asked, WITHIN_S)]
        for number, (before, now) in enumerate(zip(self.committed, found, strict=True)):
            if now < before:
                self.backward.append(f"{self._topic}-{number}: {before} -> {now}")
        self.committed = [max(pair) for pair in zip(self.committed, found, strict=True)]
        return found

    def _run(self) -> None:
        try:
            while not self._ending.wait(self._pause_s):
                for each in self._asked:
                    self._producer.produce(self._topic, b"x", partition=each.partition)
                assert self._producer.flush(WITHIN_S) == 0
                self.count += 1
                # A server that was killed is not asked until it is there again.
                with contextlib.suppress(KafkaException):
                    self.look()
        except BaseException as error:  # noqa: BLE001
            self._failures.append(error)


def find_double_owners(members: Sequence[Member]) -> list[str]:
    """As in `check_logs`, of members that are a process each."""
    return check_logs.find_double_owners(
        event | {"member": member.name} for member in members for event in member.events
    )


def wait_until_committed(flow: Flow, count: int) -> None:
    """Until each partition's committed offset is `count`."""
    wait_until(
        lambda: min(flow.look()) >= count,
        lambda: f"committed {flow.look()} of {count}",
        WITHIN_S,
        between=lambda: time.sleep(_PAUSE_S),
    )
