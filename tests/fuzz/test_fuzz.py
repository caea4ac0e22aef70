"""Some sequences of each door from fixed seeds; `make fuzz` goes on for as long as it is told."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from gateway.apis.api_registry import APIS
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import request_type
from tests.fuzz.grpc_sequence import METHODS
from tests.fuzz.laws import Tally
from tests.fuzz.pool import Pool
from tests.fuzz.run import fuzz
from tests.fuzz.state import compare
from tests.fuzz.wire_bytes import Writer
from tests.fuzz.wire_values import make_request
from tests.groups import CHECKOUT

WIRE_SEQUENCES = 60
GRPC_SEQUENCES = 20
"""Counted, for some 20 s of each on an idle machine."""


@pytest.mark.timeout(300)
def test_requests_over_the_wire(tmp_path: Path) -> None:
    tally = fuzz("wire", tmp_path, 1, WIRE_SEQUENCES)
    assert tally.sequences == WIRE_SEQUENCES
    asked = {int(kind) for kind in tally.by_kind}
    # Topics are rarely deleted, or all would be about topics that are not there.
    assert asked >= {api.key for api in APIS} - {20}, "each API is answered"


@pytest.mark.timeout(300)
def test_calls_over_grpc(tmp_path: Path) -> None:
    tally = fuzz("grpc", tmp_path, 1, GRPC_SEQUENCES)
    assert tally.sequences == GRPC_SEQUENCES
    assert tally.by_kind["Session"] > GRPC_SEQUENCES
    statuses = {"OK", "INVALID_ARGUMENT", "UNIMPLEMENTED", "NOT_FOUND"}
    assert set(tally.by_kind) & statuses


def test_what_is_not_broken_is_what_the_server_would_write() -> None:
    """Else requests would be refused before they get anywhere."""
    rng = random.Random(5)
    pool = Pool("p", rng)
    for api in APIS:
        for version in api.versions:
            kind = request_type(api.key, version)
            pool.turn()
            entity = make_request(pool, kind)
            writer = Writer(rng)
            writer.write_entity(kind, entity, kind.__flexible__)
            assert bytes(writer.out) == encode(kind, entity), (api.name, version)


def test_a_sequence_is_made_by_its_seed_alone() -> None:
    def make(seed: int) -> list[str]:
        pool = Pool("p", random.Random(seed))
        found = []
        for api in APIS:
            pool.turn()
            found.append(repr(make_request(pool, request_type(api.key, api.versions[-1]))))
        return found

    assert make(1) == make(1) != make(2)


def test_methods_of_all_services_are_called() -> None:
    texts = (path.read_text() for path in (CHECKOUT / "proto" / "muster" / "v1").glob("*.proto"))
    declared = {
        name for text in texts for name in re.findall(r"^service (\w+)", text, re.MULTILINE)
    }
    names = {method.containing_service.name for method in METHODS}
    assert names == declared | {"Health", "ServerReflection"}


def test_a_difference_is_shown_where_it_is() -> None:
    before = {"epoch": 3, "members": [{"id": "a"}, {"id": "b"}]}
    after = {"epoch": 3, "members": [{"id": "a"}, {"id": "c"}]}
    assert compare("group", before, after) == ["group.members[1].id: b before, c after"]
    assert compare("group", before, before) == []


def test_a_tally_is_a_line() -> None:
    assert str(Tally(1, 2, 3, 4)) == "1 sequences, 2 requests, 3 answers, 4 connections closed"
