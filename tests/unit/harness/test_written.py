"""A short way that writes something else than was meant is found by whatever test goes along it."""

from __future__ import annotations

import pytest

from coordinator.runtime.commit import partition_encoder
from model.ids import LogPartition
from storage.codec.commit_encoder import CommitEncoder
from storage.codec.errors import CodecError
from storage.log_store import pack_latest
from tests.support.virtual.server import VirtualServer
from tests.unit.runtime.commands.committer import Committer
from tests.written import raise_found


def commit() -> None:
    server = VirtualServer({"foo": 2})
    assert Committer(server, "g").commit(1, 77)
    server.settle()


def test_what_is_written_as_it_was_meant_is_no_finding() -> None:
    commit()
    raise_found()


@pytest.mark.parametrize("at", [0, 20, 61, -20, -40])
def test_a_wrong_byte_is_found(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    encode = CommitEncoder.encode_batch

    def careless(self: CommitEncoder, base_offset: int, *numbers: int) -> tuple[bytes, bytes]:
        batch, value = encode(self, base_offset, *numbers)
        return batch[:at] + bytes([batch[at] ^ 1]) + batch[at:][1:], value

    monkeypatch.setattr(CommitEncoder, "encode_batch", careless)
    commit()
    with pytest.raises((AssertionError, CodecError)):
        raise_found()


def test_another_offset_under_a_right_crc_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = CommitEncoder.encode_batch

    def careless(self: CommitEncoder, base_offset: int, *numbers: int) -> tuple[bytes, bytes]:
        wall_ms, partition, offset, *others = numbers
        return encode(self, base_offset, wall_ms, partition, offset + 1, *others)

    monkeypatch.setattr(CommitEncoder, "encode_batch", careless)
    commit()
    with pytest.raises(AssertionError, match="the first that differ"):
        raise_found()


def test_a_state_that_the_log_does_not_come_to_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(offset: int, timestamp: int, value: bytes) -> bytes:
        return pack_latest(offset, timestamp + 1, value)

    monkeypatch.setattr(partition_encoder, "pack_latest", careless)
    commit()
    with pytest.raises(AssertionError):
        raise_found()


def test_a_record_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    written = partition_encoder.encode_lone_commit
    monkeypatch.setattr(
        "coordinator.runtime.commit.writer.encode_lone_commit",
        lambda partition, *rest: written(LogPartition(partition ^ 1), *rest),
    )
    commit()
    with pytest.raises(AssertionError):
        raise_found()
