"""A group at any position of the log is what the whole log up to there comes to, of its keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.ids import GroupId, LogOffset
from model.past.as_of import AsOfOffset
from storage.codec.batch_encoding import encode_batch
from storage.log.group_history import BeyondHistory, GroupQuestion, fold_group
from storage.log.trim import read_history_start
from storage.log_store import LatestEntry, LogStore
from tests.properties.storage.test_trim import PARTITION, fold_states, make_log, steps
from tests.support.storage.appends import offset_key
from tests.support.storage.drawn_logs import LOGS, Write
from tests.support.storage.raw_log import RawLog

law = settings(max_examples=100, deadline=None)
GROUP = GroupId("g")
PREFIX = b"\x00\x01g"

Entries = dict[bytes, LatestEntry]


def select(entries: Entries) -> Entries:
    return {key: entry for key, entry in entries.items() if key.startswith(PREFIX, 2)}


def ask(store: LogStore, offset: int) -> tuple[Entries, dict[int, Entries]]:
    end = store.next_offset(PARTITION)
    question = GroupQuestion(PARTITION, GROUP, AsOfOffset(LogOffset(offset)), end, 0)
    history = fold_group(store, question, read_history_start(store, PARTITION))
    assert history.position.offset == offset
    return dict(history.latest), {key: dict(value) for key, value in history.pending.items()}


@law
@given(LOGS, st.integers(1, 4), st.sampled_from((1, 200, 1 << 20)))
def test_every_position_of_the_history_however_much_is_trimmed(
    writes: list[Write], per_batch: int, bytes_max: int
) -> None:
    log = make_log(writes, 0, per_batch)
    store = log.store
    states = {
        end: (select(latest), {key: select(value) for key, value in pending.items()})
        for end, (latest, pending) in fold_states(store)
    }
    for end, state in states.items():
        assert ask(store, end - 1) == state
    for start in steps(store, bytes_max):
        for end, state in states.items():
            if end >= start:
                assert ask(store, end - 1) == state
                continue
            with pytest.raises(BeyondHistory) as caught:
                ask(store, end - 1)
            assert caught.value.start.offset == start


@law
@given(LOGS, st.integers(1, 3))
def test_groups_whose_names_begin_alike_are_told_apart(writes: list[Write], per_batch: int) -> None:
    log = make_log(writes, 0, per_batch)
    end = log.store.next_offset(PARTITION)
    other = write_other_group(log)
    question = GroupQuestion(PARTITION, GroupId("gg"), AsOfOffset(end), LogOffset(end + 1), 0)
    history = fold_group(log.store, question)
    assert list(history.latest) == [other]
    assert not history.pending


def write_other_group(log: RawLog) -> bytes:
    end, key = log.store.next_offset(PARTITION), offset_key("gg")
    log.append(0, [encode_batch(end, [(key, b"value")], 5)])
    return key
