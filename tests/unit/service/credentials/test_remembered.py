"""For how long credentials are remembered."""

from __future__ import annotations

import pytest

from coordinator.service.credentials import remembered
from coordinator.service.credentials.remembered import Remembered
from security.identity import Identity

ALICE = Identity("User:alice")


def test_it_is_forgotten_after_its_time() -> None:
    memory = Remembered(b"k", 10)
    memory.note(("alice", "secret"), 1, ALICE, 100)
    assert memory.find(("alice", "secret"), 1, 109.9) == ALICE
    assert memory.find(("alice", "secret"), 1, 110) is None
    assert not memory


def test_it_is_forgotten_when_the_credential_changes() -> None:
    memory = Remembered(b"k", 10)
    memory.note(("alice", "secret"), "old", ALICE, 100)
    assert memory.find(("alice", "secret"), "new", 100) is None
    assert memory.find(("alice", "secret"), "old", 100) is None


def test_a_token_is_not_remembered_beyond_its_end() -> None:
    memory = Remembered(b"k", 1_000)
    short = Identity("User:alice", expires_at_ms=105_000)
    memory.note(("token",), None, short, 100)
    assert memory.find(("token",), None, 104.9) == short
    assert memory.find(("token",), None, 105) is None


@pytest.mark.parametrize("other", [("alice", "Secret"), ("alices", "ecret"), ("alicesecret",)])
def test_only_the_same_is_found(other: tuple[str, ...]) -> None:
    memory = Remembered(b"k", 10)
    memory.note(("alice", "secret"), 1, ALICE, 100)
    assert memory.find(other, 1, 100) is None


def test_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "REMEMBERED_MAX", 2)
    memory = Remembered(b"k", 10)
    for number in range(3):
        memory.note((str(number),), None, ALICE, 100)
    assert len(memory) == 2
    assert memory.find(("0",), None, 100) is None
    assert memory.find(("2",), None, 100) == ALICE


def test_no_secret_is_kept() -> None:
    memory = Remembered(b"k", 10)
    memory.note(("alice", "planted"), None, ALICE, 100)
    assert "planted" not in repr([*memory._entries, *memory._entries.values()])
