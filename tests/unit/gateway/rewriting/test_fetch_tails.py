"""Fetch responses that pass in pieces keep their length, and no endpoint."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest

from gateway.codec.decoding import Cursor, compile_reader, decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import response_type
from gateway.rewriting.fetch_tails import TAIL_BYTES_MAX, FetchTail, hide_endpoints
from gateway.rewriting.naming import CannotRewrite
from gateway.rewriting.versions import readable_versions
from tests.support.gateway.random_entities import make_entity

FETCH = 1


def feed(version: int, body: bytes, random: Random) -> bytes:
    tail = FetchTail(version, len(body))
    out = b""
    while body:
        size = random.choice([1, 2, 7, 100, 5_000])
        out += tail.feed(body[:size])
        body = body[size:]
    return out


@pytest.mark.parametrize("version", [16, 17, 18])
def test_all_but_the_endpoints_stays(version: int) -> None:
    response: Any = response_type(FETCH, version)
    for seed in range(200):
        random = Random(seed)
        entity = make_entity(random, response)
        header = random.choice([b"\x00", b"\x02\x01\x03abc\x09\x00"])
        body = header + encode(response, entity)
        out = feed(version, body, random)
        assert len(out) == len(body)
        cursor = Cursor(out, len(header), len(out), len(out))
        given = compile_reader(response)(cursor)
        assert cursor.pos == len(out)
        plain = encode(response, dataclasses.replace(entity, node_endpoints=()))
        assert given == decode(response, plain, 0, len(plain), len(plain))
        for node in entity.node_endpoints:
            assert len(node.host) < 5 or node.host.encode() not in out


def test_every_readable_version_with_endpoints_is_walked() -> None:
    FetchTail(readable_versions(FETCH)[-1], 100)
    with pytest.raises(CannotRewrite):
        FetchTail(readable_versions(FETCH).stop, 100)


@pytest.mark.parametrize("version", [16, 18])
def test_damaged_responses_are_refused_or_pass_but_never_crash(version: int) -> None:
    response: Any = response_type(FETCH, version)
    for seed in range(300):
        random = Random(seed)
        body = bytearray(b"\x00" + encode(response, make_entity(random, response)))
        for _ in range(3):
            body[random.randrange(len(body))] = random.randrange(256)
        try:
            assert len(feed(version, bytes(body), random)) == len(body)
        except CannotRewrite:
            continue


def test_a_tail_without_end_is_refused() -> None:
    tail = FetchTail(16, 10 * TAIL_BYTES_MAX)
    tail.feed(b"\x00" + bytes(10) + b"\x01" + b"\x01\x07\xff\xff\xff\x7f")
    with pytest.raises(CannotRewrite, match="too much"):
        tail.feed(bytes(TAIL_BYTES_MAX))


@pytest.mark.parametrize("tail", [b"", b"\x01\x00\x05abc", b"\x02\x00\x01a\x01\x00"])
def test_tags_that_cannot_be_hidden_are_refused(tail: bytes) -> None:
    with pytest.raises(CannotRewrite):
        hide_endpoints(tail)
