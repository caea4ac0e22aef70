"""A sequence of requests over Kafka's wire: some connections, three groups, one seed."""

from __future__ import annotations

import random
import select
import socket
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from gateway.apis.api_registry import APIS
from gateway.codec.kio_schema import request_type
from tests.fuzz.laws import DEADLINE_S, VALID_TOPIC, Broken, Tally, find_unknown_error
from tests.fuzz.pool import Pool
from tests.fuzz.wire_bytes import write_request
from tests.fuzz.wire_values import make_request
from tests.support.wire.frames import parse

LINES = 4
STEPS = 60
_API_VERSIONS = 18
_PRODUCE, _FETCH, _METADATA, _JOIN, _HEARTBEAT, _LEAVE, _SYNC = 0, 1, 3, 11, 12, 13, 14
_INIT_PRODUCER, _DELETE_TOPICS, _CONSUMER_HEARTBEAT = 22, 20, 68
_WAITING = (_FETCH, _JOIN, _SYNC, _CONSUMER_HEARTBEAT, _HEARTBEAT)
"""Their answers may wait for something, and the sequence goes on meanwhile."""
_FOR_OTHERS = (_JOIN, _SYNC)
_PATIENCE_S = 0.3
"""For a request that may wait for longer than the deadline: its connection is then closed."""
_KAFKAS_OWN = (0, 1, 2, 27, 44)
"""Kafka says UNKNOWN_SERVER_ERROR of a codec, an isolation level or an operation that there is
not, and of what is negative. A failure of the server would be in its log as well."""
_WEIGHTS = {_CONSUMER_HEARTBEAT: 12, _JOIN: 8, _SYNC: 6, 8: 5, 9: 3, _HEARTBEAT: 4, _LEAVE: 3,
            28: 4, 27: 3, 44: 2}  # fmt: skip
_RARE = {_DELETE_TOPICS: 0.1}


@dataclass
class Asked:
    """A request without its answer. ``may_be_silent``: none is due where acks are 0."""

    key: int
    version: int
    correlation: int
    group_id: str
    entity: Any
    is_broken: bool

    @property
    def may_be_silent(self) -> bool:
        return self.key == _PRODUCE


class Line:
    """One connection; answers come in the order of the requests."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked: deque[Asked] = deque()
        self._data = bytearray()

    def send(self, asked: Asked, data: bytes) -> None:
        self.asked.append(asked)
        self.socket.sendall(data)

    def receive(self, timeout_s: float) -> list[tuple[Asked, bytes]] | None:
        """Answers that have come within the time; ``None`` if the connection is closed."""
        end = time.monotonic() + timeout_s
        while select.select([self.socket], [], [], max(0, end - time.monotonic()))[0]:
            try:
                data = self.socket.recv(1 << 18)
            except ConnectionError:
                return None
            if not data:
                return None
            self._data += data
            if found := self._take():
                return found
        return []

    def _take(self) -> list[tuple[Asked, bytes]]:
        found = []
        while len(self._data) >= 4:
            size = struct.unpack_from(">i", self._data)[0]
            if len(self._data) < 4 + size:
                break
            body = bytes(self._data[4 : 4 + size])
            del self._data[: 4 + size]
            (correlation,) = struct.unpack_from(">i", body)
            while self.asked and self.asked[0].correlation != correlation:
                passed = self.asked.popleft()
                if not passed.may_be_silent:
                    raise Broken(f"no answer to {describe(passed)}")
            if not self.asked:
                raise Broken(f"an answer that nobody asked for: {body[:100].hex()}")
            found.append((self.asked.popleft(), body))
        return found


def describe(asked: Asked) -> str:
    """For the message of a failure."""
    return f"API {asked.key} version {asked.version}: {str(asked.entity)[:2_000]}"


class WireSequence:
    """Runs one seed against the server at ``address``. Raises `Broken`."""

    def __init__(self, address: tuple[str, int], seed: int, tally: Tally) -> None:
        self.rng = random.Random(seed)
        self.pool = Pool(f"w{seed}", self.rng)
        self._address = address
        self._tally = tally
        self._correlation = 0
        self._lines: list[Line] = []

    def run(self) -> None:
        """All steps; then each request has its answer, or its connection is closed."""
        try:
            self._lines = [Line(self._address) for _ in range(LINES)]
            self._learn_topics()
            for _ in range(STEPS):
                self._step()
            for line in self._lines:
                self._drain(line)
        finally:
            for line in self._lines:
                line.socket.close()
        self._tally.sequences += 1

    def _step(self) -> None:
        for line in list(self._lines):
            self._poll(line, 0)
        idle = [line for line in self._lines if not line.asked]
        line = self.rng.choice(idle or self._lines)
        if not idle and self.rng.random() < 0.7:
            # All wait for one another: that passes in time, and more of the same gains nothing.
            self._poll(line, 0.05)
            line = min(self._lines, key=lambda line: len(line.asked))
        self._ask(line)

    def _ask(self, line: Line) -> None:
        rng = self.rng
        self.pool.turn()
        weights = [_RARE.get(api.key, _WEIGHTS.get(api.key, 1)) for api in APIS]
        (api,) = rng.choices(APIS, weights)
        version = rng.choice(list(api.versions)) if rng.random() < 0.5 else api.versions[-1]
        kind = request_type(api.key, version)
        entity = make_request(self.pool, kind)
        errors = rng.choice((0, 0, 0, 0, 0, 1, 1, 2))
        # Timeouts that were put in for others may be of any length.
        self.pool.waits = self.pool.waits or bool(errors and api.key in _FOR_OTHERS)
        asked = self._send(line, api.key, version, entity, errors)
        if api.key == _PRODUCE:
            versions = request_type(_API_VERSIONS, 0)
            self._send(line, _API_VERSIONS, 0, versions(), 0)
        if errors or asked.key not in _WAITING:
            self._drain(line, only=asked)

    def _send(self, line: Line, key: int, version: int, entity: Any, errors: int) -> Asked:
        self._correlation += 1
        asked = Asked(key, version, self._correlation, self.pool.group_id, entity, bool(errors))
        data = write_request(self.rng, key, version, self._correlation, entity, errors)
        self._tally.requests += 1
        if line not in self._lines:
            return asked  # it was closed after the one before
        try:
            line.send(asked, data)
        except ConnectionError:
            self._replace(line)
        return asked

    def _drain(self, line: Line, only: Asked | None = None) -> None:
        """Until there are no requests without answers on it, or ``only`` has its answer."""
        end = time.monotonic() + DEADLINE_S
        while line in self._lines and line.asked and (only is None or only in line.asked):
            first = line.asked[0]
            if self._may_wait(first):
                if not self._poll(line, _PATIENCE_S):
                    self._replace(line)
            elif not self._poll(line, max(0, end - time.monotonic())):
                raise Broken(f"no answer within {DEADLINE_S} s to {describe(first)}")

    def _may_wait(self, asked: Asked) -> bool:
        """Whether it may rightly be without an answer for longer than the deadline."""
        if asked.is_broken:
            return asked.key in _WAITING
        return self.pool.waits and asked.key in _FOR_OTHERS

    def _poll(self, line: Line, timeout_s: float) -> bool:
        """Whether something came: answers, or the end."""
        found = line.receive(timeout_s)
        if found is None:
            self._tally.closed += 1
            self._replace(line)
            return True
        for asked, body in found:
            self._hear(asked, body)
        return bool(found)

    def _replace(self, line: Line) -> None:
        if line in self._lines:
            line.socket.close()
            self._lines[self._lines.index(line)] = Line(self._address)

    def _hear(self, asked: Asked, body: bytes) -> None:
        self._tally.answers += 1
        self._tally.by_kind[str(asked.key)] += 1
        version = asked.version
        if asked.key == _API_VERSIONS and body[4:6] == b"\0\x23":
            version = 0  # UNSUPPORTED_VERSION is said in version 0
        try:
            _, answer = parse(asked.key, version, body)
        except Exception as error:
            raise Broken(f"an answer that is none ({error!r}) to {describe(asked)}") from error
        if asked.key not in _KAFKAS_OWN and find_unknown_error(answer):
            raise Broken(f"UNKNOWN_SERVER_ERROR to {describe(asked)}: {str(answer)[:1_000]}")
        self._learn(asked, answer)

    def _learn(self, asked: Asked, answer: Any) -> None:
        pool = self.pool
        match asked.key:
            case 68 if not answer.error_code and answer.member_id:
                group_id = asked.entity.group_id
                member = pool.learn(group_id, answer.member_id, answer.member_epoch)
                if answer.assignment is not None:
                    rows = answer.assignment.topic_partitions
                    member.owned = {row.topic_id: row.partitions for row in rows}
            case 11 if answer.member_id:
                pool.learn(asked.entity.group_id, answer.member_id, max(answer.generation_id, 0))
            case 22 if not answer.error_code:
                pool.producers.append((answer.producer_id, answer.producer_epoch))
            case _:
                pass

    def _learn_topics(self) -> None:
        line = self._lines[0]
        entity = request_type(_METADATA, 12)(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        self._correlation += 1
        asked = Asked(_METADATA, 12, self._correlation, "", entity, False)
        line.send(asked, write_request(self.rng, _METADATA, 12, self._correlation, entity, 0))
        found: list[tuple[Asked, bytes]] | None = []
        while not found:
            found = line.receive(DEADLINE_S)
            if found is None:
                raise Broken("the server closes a connection that asks for Metadata")
        _, body = found[0]
        _, answer = parse(_METADATA, 12, body)
        self.pool.topic_ids = [
            topic.topic_id for topic in answer.topics if topic.name != VALID_TOPIC
        ]
