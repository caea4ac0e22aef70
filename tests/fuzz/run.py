"""Sequences against a server of their own, then what it says before and after a restart."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.grpc_sequence import GrpcSequence
from tests.fuzz.laws import DEADLINE_S, VALID_TOPIC, Broken, Tally
from tests.fuzz.state import find_differences, read_state
from tests.fuzz.wire_sequence import WireSequence
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.wire.blocking import Client

DOORS = ("wire", "grpc")
_TOPICS = {"orders": 12, "events": 3, VALID_TOPIC: 1}
_VALID_GROUP = "valid"
_SETTINGS = {
    "gateway.park.ms": 20,
    "group.initial.rebalance.delay.ms": 20,
    "group.min.session.timeout.ms": 100,
    "group.consumer.min.session.timeout.ms": 6_000,
    "group.consumer.session.timeout.ms": 60_000,
    "metrics.groups.max": 100,
    "gateway.topics.total.bytes": 100_000_000,
}
"""Classic members go soon, so that joins end; those of the consumer protocol stay."""


class Failure(AssertionError):
    """What broke, and how to see it again."""


def fuzz(door: str, folder: Path, first: int, count: int) -> Tally:
    """Run ``count`` sequences from the seed ``first`` on. Raises `Failure`."""
    tally = Tally()
    data = folder / "data"
    # Backups that are asked for by a relative name lie where it runs.
    with (
        asyncio.Runner() as runner,
        MusterServer(data, topics=_TOPICS, settings=_SETTINGS, working_folder=folder) as server,
    ):
        for seed in range(first, first + count):
            repeat = f"python -m tests.fuzz --door {door} --only {seed}"
            try:
                _make_sequence(door, server, seed, tally, runner)()
                _check_alive(server, seed)
            except (Broken, OSError) as error:
                raise Failure(
                    f"seed {seed}: {error!r}\n{_find_errors(server)}\n{repeat}"
                ) from error
        try:
            _check_restart(server)
        except (Broken, OSError) as error:
            repeat = f"python -m tests.fuzz --door {door} --seed {first} --round {count}"
            raise Failure(f"{error!r}\n{_find_errors(server)}\n{repeat}") from error
    return tally


def _make_sequence(
    door: str, server: MusterServer, seed: int, tally: Tally, runner: asyncio.Runner
) -> Callable[[], None]:
    if door == "grpc":
        return GrpcSequence(server.grpc, seed, tally, runner).run
    return WireSequence(server.address("kafka"), seed, tally).run


def _check_alive(server: MusterServer, seed: int) -> None:
    """A valid client is served, and the log has no traceback."""
    client = Client(server.address("kafka"))
    try:
        if code := client.commit(_VALID_GROUP, VALID_TOPIC, 0, seed):
            raise Broken(f"a valid commit is answered {code}")
        if client.offsets(_VALID_GROUP).get((VALID_TOPIC, 0)) != seed:
            raise Broken("a commit that was acknowledged is not there")
    finally:
        client.close()
    if errors := _find_errors(server):
        raise Broken(f"the log has errors:\n{errors}")


def _find_errors(server: MusterServer) -> str:
    """The end of the log from the first traceback on, if there is one."""
    output = server.output()
    at = output.find("Traceback")
    return output[max(0, at - 500) : at + 4_000] if at >= 0 else ""


def _check_restart(server: MusterServer) -> None:
    """What is loaded is what was live, and the log is sound."""
    before = _read_settled(server)
    server.terminate()
    verified = subprocess.run(
        [sys.executable, "-m", "cli", "log", "verify", str(server.data_dir)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if verified.returncode:
        raise Broken(f"muster log verify: {verified.stdout}{verified.stderr}")
    # Topics that were deleted stay deleted.
    server.arguments = [text for text in server.arguments if not text.startswith("--topic=")]
    server.start()
    if differences := find_differences(before, read_state(server.address("kafka"))):
        raise Broken("not as before the restart:\n" + "\n".join(differences[:5]))
    server.terminate()


def _read_settled(server: MusterServer) -> dict[str, object]:
    """The state when nothing changes any more: deadlines of a sequence pass in seconds."""
    end = time.monotonic() + DEADLINE_S
    before = read_state(server.address("kafka"))
    while True:
        time.sleep(2.5)
        now = read_state(server.address("kafka"))
        if now == before or time.monotonic() > end:
            return now
        before = now
