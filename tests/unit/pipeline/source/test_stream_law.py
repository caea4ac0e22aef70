"""A stream gives what a batch query over the same offsets would have given at the time.

Random logs are written, rolled, compacted, merged, torn and truncated between micro-batches of any
size, by a query that continues or is restarted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from pipeline.schema import DATA_LOSS, RECORDS, TOPIC
from pipeline.source.data_source import GroupLogReader
from pipeline.source.errors import DataLoss
from pipeline.source.options import parse_options
from tests.support.pipeline.broker_log import BrokerLog, make_batch
from tests.unit.pipeline.source.streams import Row, Stream

SEEDS = int(os.environ.get("STREAM_SEEDS", "25"))
STEPS = 14


def read_batch(folder: Path, start: int, end: int) -> list[Row]:
    """The rows of a batch query over these offsets, for a log with any end."""
    options = {
        "path": str(folder),
        "decode": "records",
        "startingOffsets": json.dumps({TOPIC: {"0": start}}),
        "endingOffsets": json.dumps({TOPIC: {"0": end}}),
        "failOnDataLoss": "false",
    }
    reader = GroupLogReader(parse_options(options), RECORDS)
    return [
        row
        for task in reader.partitions()
        for rows in reader.read(task)
        for row in rows.to_pylist()
    ]


def change(chance: Random, log: BrokerLog) -> None:
    """A broker's operations on a log that lose no current record."""
    match chance.choice(("append", "append", "append", "roll", "clean", "merge", "tear")):
        case "append":
            log.mend()
            for _ in range(chance.randint(1, 8)):
                log.append(make_batch(chance, log.end))
        case "roll":
            log.mend()
            log.roll()
        case "clean":
            log.clean(chance, keep=chance.choice((0.0, 0.5)))
        case "merge":
            log.merge(chance)
        case "tear":
            batch = make_batch(chance, log.end)
            log.tear(batch, chance.randrange(1, len(batch)))


def list_steps(chance: Random, log: BrokerLog, stream: Stream) -> Iterator[None]:
    for _ in range(STEPS):
        for _ in range(chance.randint(0, 4)):
            change(chance, log)
        if chance.random() < 0.3:
            stream.start()
        yield


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_by_what_a_broker_does(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    log = BrokerLog(tmp_path)
    stream = Stream(tmp_path)
    for _ in list_steps(chance, log, stream):
        start = stream.position
        end = stream.plan(chance.choice((None, 1, 5, 20)))
        expected = read_batch(tmp_path, start, end[TOPIC]["0"])
        assert [row["problem"] for row in expected if row["problem"]] == []
        assert stream.read(end) == expected
    log.mend()
    start = stream.position
    assert stream.step() == read_batch(tmp_path, start, log.end)
    assert stream.position == log.end


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_log_that_is_cut_below_what_was_read_is_never_taken(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    log = BrokerLog(tmp_path)
    stream = Stream(tmp_path)
    lenient = Stream(tmp_path, failOnDataLoss="false")
    for _ in list_steps(chance, log, stream):
        stream.step(chance.choice((None, 5, 20)))
    log.mend()
    log.append(make_batch(chance, log.end))
    stream.step()
    lenient.step()
    left = log.cut(chance.randrange(log.end))
    for _ in range(chance.randint(0, 30)):
        log.append(make_batch(chance, log.end, group="other"))
    if chance.random() < 0.5:
        log.roll()
    if chance.random() < 0.5:
        stream.start()
        lenient.start()
    assert left < stream.position
    with pytest.raises(DataLoss, match=r"partition 0.*offset \d+"):
        stream.step()
    # The lenient query reports the loss in one row, and then returns the existing records.
    before = lenient.position
    rows = lenient.step()
    goes_on = min(before, log.end)
    assert (rows[0]["offset"], rows[0]["problem"]) == (goes_on, DATA_LOSS)
    log.append(make_batch(chance, log.end, group="other"))
    assert rows[1:] + lenient.step() == read_batch(tmp_path, goes_on, log.end)
    assert lenient.step() == []
