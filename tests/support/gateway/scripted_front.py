"""A front whose cluster answers as the test says."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from kio.serial import entity_reader

from gateway.codec.kio_schema import request_type, response_type
from gateway.fronting.front import LinkUnavailable, PassedClient, PassedLink
from gateway.fronting.remembered import RememberedAnswers
from gateway.rewriting.versions import readable_versions
from model.places import Place
from tests.support.wire.codec import decode, encode
from tests.support.wire.frames import make_entity

OWN_ID = 2**30 + 7
SIZE = struct.Struct(">i")


class Passed(NamedTuple):
    """A request that came to the cluster."""

    key: int
    version: int
    client_id: str | None
    request: Any
    frame: bytes


Answer = Callable[[Passed], Any]
"""The fields of the response; bytes for a whole frame; ``None`` for no response."""


def read_request(frame: bytes) -> Passed:
    """Decode a request by kio's own reader."""
    key, version = struct.unpack_from(">hh", frame, 4)
    target = request_type(key, version)
    header, size = entity_reader(target.__header_schema__)(frame, 4)
    return Passed(key, version, header.client_id, decode(target, frame, 4 + size), frame)


def make_response(asked: Passed, fields: dict[str, Any]) -> bytes:
    """A whole response frame to a request."""
    target = response_type(asked.key, asked.version)
    body = encode(target, make_entity(target, fields))
    tags = b"\x00" if target.__header_schema__.__flexible__ else b""
    data = asked.frame[8:12] + tags + body
    return SIZE.pack(len(data)) + data


class ScriptedLink:
    """A link that answers each request at once, if the script has an answer."""

    def __init__(self, front: ScriptedFront) -> None:
        self._front = front
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_closed = False

    def send(self, frame: bytes) -> None:
        assert not self.is_closed
        asked = read_request(frame)
        self._front.asked.append(asked)
        said = self._front.answer(asked)
        if said is not None:
            self.put(said if isinstance(said, bytes) else make_response(asked, said))

    def put(self, frame: bytes | None) -> None:
        """Have a frame arrive; ``None`` for the end."""
        self._answers.put_nowait(frame)

    async def read_frame(self) -> bytes | None:
        return await self._answers.get()

    def close(self) -> None:
        self.is_closed = True


class ScriptedFront:
    """A front with one broker, 1, whose relay is relay-1:9001; it serves all that is known."""

    def __init__(self, answer: Answer = lambda asked: None) -> None:
        self.node_id = OWN_ID
        self.versions = {key: readable_versions(key) for key in range(93)}
        self.offers_consumer_protocol = True
        self.answer = answer
        self.asked: list[Passed] = []
        self.links: list[ScriptedLink] = []
        self.places: dict[str, Place] = {}
        self.others: dict[str, tuple[int, str, int]] = {}
        self.matching: set[str] = set()
        self.takes: list[str] = []
        self.passed_on: list[int] = []
        self.is_reachable = True
        self.remembered = RememberedAnswers()
        self.relays = {1: ("relay-1", 9001)}

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        return self.relays.get(node_id)

    def find_place(self, group_id: str) -> Place:
        return self.places.get(group_id, Place.UPSTREAM)

    def matches(self, group_id: str) -> bool:
        return group_id in self.matching

    def ask_to_take(self, group_id: str, cause: str) -> None:
        assert cause
        self.takes.append(group_id)

    def other_muster_of(self, group_id: str) -> tuple[int, str, int] | None:
        return self.others.get(group_id)

    def note_passed_on(self, key: int) -> None:
        self.passed_on.append(key)

    async def open(self, connection: PassedClient) -> PassedLink:
        if not self.is_reachable:
            raise LinkUnavailable("no broker can be reached")
        if connection.passed is not None:
            if connection.passed.is_closed:
                raise LinkUnavailable("the login has ended")
            return connection.passed
        link = ScriptedLink(self)
        self.links.append(link)
        return link
