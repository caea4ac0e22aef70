"""Tables that follow a live store under load, and are killed: do they keep up, and end whole?

    python -m tests.pipeline.live_stream [--seconds 300] [--rate 20000] [--kills 2]

Commits go to a `muster serve` at a steady rate, and members come to a group; beside it runs
`muster pipeline tables --follow`, which is killed with SIGKILL and started again. In the end its
tables and those of a batch run over the same store have the same rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.waiting import wait_until
from tests.support.wire import fields
from tests.support.wire.frames import make_frame
from tests.support.wire.member import COMMIT, WireMember, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders"
PARTITIONS = 500
GROUPS = 10
MEMBERS = 4
DRAINED_WITHIN_S = 60.0
DEADLINE_S = 600.0
_POLL_S = 0.25


@dataclass(slots=True)
class Outcome:
    """``sent`` commits, ``backlog`` how many were not in the tables when the load ended.

    The load lasts longer than was asked for where a follower is slow to begin.
    """

    sent: int = 0
    lasted_s: float = 0.0
    kills: int = 0
    backlog: int = 0
    drained_s: float = 0.0
    rows: dict[str, int] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)


class Load:
    """Commits at a rate, and members, in a thread of its own."""

    def __init__(self, server: MusterServer, rate: int) -> None:
        self.sent = 0
        self._address = server.address("kafka")
        self._rate = rate
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    async def _run(self) -> None:
        members = [
            asyncio.create_task(WireMember(self._address, "live", TOPIC).run())
            for _ in range(MEMBERS)
        ]
        await asyncio.gather(*(self._commit(f"payments-{n}") for n in range(GROUPS)))
        for member in members:
            member.cancel()
        await asyncio.gather(*members, return_exceptions=True)

    async def _commit(self, group_id: str) -> None:
        """All partitions at once, the same bytes again and again."""
        offsets = {partition: 1_000_000 + partition for partition in range(PARTITIONS)}
        request = make_frame(COMMIT, 9, **fields.commit(group_id, TOPIC, offsets))
        interval_s = PARTITIONS * GROUPS / self._rate
        async with await connect(self._address) as client:
            client.writer.write(request)
            _, answer = await client.read(COMMIT, 9)
            assert {row.error_code for topic in answer.topics for row in topic.partitions} == {0}
            client.writer.write(request)
            first = await client.read_frame()
            due = time.monotonic()
            while not self._ended.is_set():
                client.writer.write(request)
                assert await client.read_frame() == first, "an answer with an error"
                self.sent += PARTITIONS
                due += interval_s
                await asyncio.sleep(max(0.0, due - time.monotonic()))


class Follower:
    """`muster pipeline tables --follow`, and all that it starts."""

    def __init__(self, data: Path, out: Path, log: Path) -> None:
        self.checkpoint = out / "_checkpoint"
        self._arguments = [
            *(sys.executable, "-m", "cli", "pipeline", "tables", "--follow", "--quiet"),
            *("--path", str(data), "--out", str(out), "--trigger-seconds", "2"),
            *("--master", "local[2]"),
        ]
        self._log = log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._arguments,
                cwd=CHECKOUT,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Lets it end the tables."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(DEADLINE_S) == 0, self._log.read_text(encoding="utf-8")

    def count_offsets(self) -> int:
        """How many offsets are in the tables, as the checkpoint says."""
        ended = [int(file.name) for file in self.checkpoint.glob("commits/*") if _is_number(file)]
        if not ended:
            return 0
        lines = (self.checkpoint / "offsets" / str(max(ended))).read_text(encoding="utf-8")
        partitions = json.loads(lines.splitlines()[-1])["__consumer_offsets"]
        return sum(partitions.values())

    def wait_for(self, offsets: int, deadline_s: float = DEADLINE_S) -> float:
        """Until so many are in the tables; how long that took."""
        return wait_until(
            lambda: self.count_offsets() >= offsets,
            lambda: f"{offsets} are in the tables: {self._log.read_text(encoding='utf-8')}",
            deadline_s,
            between=lambda: time.sleep(_POLL_S),
            is_hopeless=lambda: self._process.poll() is not None,
        )


def _is_number(file: Path) -> bool:
    return file.name.isdigit()


def run(folder: Path, seconds: float, rate: int, kills: int) -> Outcome:
    """Load, tables and kills; what the tables then have is in ``folder / "out"``."""
    outcome = Outcome()
    data, out = folder / "data", folder / "out"
    with MusterServer(data, topics={TOPIC: PARTITIONS}) as server:
        follower = Follower(data, out, folder / "follower.log")
        load = Load(server, rate)
        try:
            load.start()
            begun = time.monotonic()
            for number in range(kills):
                seen = follower.count_offsets()
                follower.wait_for(seen + 1)
                due = begun + seconds * (number + 1) / (kills + 1)
                time.sleep(max(0.0, due - time.monotonic()))
                follower.kill()
                outcome.kills += 1
                follower.start()
            time.sleep(max(0.0, begun + seconds - time.monotonic()))
            load.stop()
            outcome.lasted_s = time.monotonic() - begun
            outcome.sent = load.sent
            outcome.backlog = max(0, load.sent - follower.count_offsets())
            outcome.drained_s = follower.wait_for(load.sent)
            follower.stop()
        finally:
            load.stop()
            follower.kill()
    return outcome


def compare(spark: SparkSession, folder: Path, outcome: Outcome) -> None:
    """The tables, with what came after the follower had ended, beside those of a batch."""
    from pipeline.tables.tables_job import TABLES, write_tables
    from pipeline.tables.tables_stream import StreamOptions, stream_tables

    data, out, batch = str(folder / "data"), folder / "out", folder / "batch"
    outcome.rows = stream_tables(spark, data, str(out), StreamOptions()).rows
    write_tables(spark, data, str(batch))
    for name in TABLES:
        if compute_print(spark, out / name) != compute_print(spark, batch / name):
            outcome.differing.append(name)


def compute_print(spark: SparkSession, table: Path) -> tuple[int, int]:
    """The number of rows and a sum of hashes of all that they hold."""
    from pyspark.sql import functions as sql

    if not any(table.rglob("*.parquet")):
        return 0, 0
    rows = spark.read.parquet(str(table))
    hashed = rows.select(sql.xxhash64(*sorted(rows.columns)).cast("decimal(38,0)").alias("hash"))
    (found,) = hashed.agg(sql.count("*"), sql.sum("hash")).collect()
    return int(found[0]), int(found[1] or 0)


def main() -> int:
    """Prints what was seen; 1 where the tables differ or were not done soon after the load."""
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.live_stream")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rate", type=int, default=20_000, help="commits a second")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument(
        "--drained-within", type=float, default=DRAINED_WITHIN_S, help="seconds after the load"
    )
    chosen = parser.parse_args()
    from pipeline.session import make_session

    with TemporaryDirectory(prefix="muster-live-stream-") as name:
        folder = Path(name)
        outcome = run(folder, chosen.seconds, chosen.rate, chosen.kills)
        print(
            f"{outcome.sent:,} commits in {outcome.lasted_s:.0f} s "
            f"({outcome.sent / outcome.lasted_s:,.0f}/s), {outcome.kills} kills; "
            f"{outcome.backlog:,} not in the tables then, all {outcome.drained_s:.1f} s later",
            flush=True,
        )
        spark = make_session("live-stream", master="local[2]", spark_log_level="ERROR")
        compare(spark, folder, outcome)
        spark.stop()
    print(f"rows: {outcome.rows}")
    print(f"tables that differ from a batch run's: {outcome.differing or 'none'}")
    return int(bool(outcome.differing) or outcome.drained_s > chosen.drained_within)


if __name__ == "__main__":
    sys.exit(main())
