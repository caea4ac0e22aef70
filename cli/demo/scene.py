"""The script of the demo, and what it records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from cli.demo.demo_audit import Audit
from cli.demo.events import Kind
from cli.demo.ledger import Ledger
from cli.demo.observer import GroupView, Observer, is_settled
from cli.demo.processes import Worker
from cli.demo.producer import TrickleProducer
from cli.demo.server_process import ServerProcess
from cli.demo.summary import (
    Change,
    Check,
    Outage,
    check_commits,
    check_converged,
    check_one_owner,
    check_restart,
    check_workers,
)
from cli.demo.view import GroupPicture, Screen, describe_group, print_summary

TOPIC = "orders"
PARTITIONS = 12
KAFKA_GROUP = "billing"
GRPC_GROUP = "shipping"
AUDIT_GROUP = "audit"
TITLES = {
    KAFKA_GROUP: f"{KAFKA_GROUP} (confluent-kafka, group.protocol=consumer)",
    GRPC_GROUP: f"{GRPC_GROUP} (muster.Member, gRPC)",
}
# A restart of the server takes up to 5 s on a busy machine; a member that hears nothing for the
# session timeout gives up its partitions, and nothing is to move in the restart.
SESSION_TIMEOUT_MS = 10_000
SERVER_ARGUMENTS = (
    f"--topic={TOPIC}={PARTITIONS}",
    f"--group.consumer.session.timeout.ms={SESSION_TIMEOUT_MS}",
    f"--group.consumer.min.session.timeout.ms={SESSION_TIMEOUT_MS}",
    "--group.consumer.heartbeat.interval.ms=2000",
    "--group.consumer.min.heartbeat.interval.ms=2000",
    "--log.level=warning",
)
SETTLE_TIMEOUT_S = 25.0
HOLD_S = 4.0
LENGTH_S = 42.0
_POLL_S = 0.02


class SceneFailed(Exception):
    """A client ended unexpectedly, so the rest of the scene would show nothing."""


class Scene:
    """One run of the demo."""

    def __init__(self, folder: Path) -> None:
        self.began_s = time.monotonic()
        self.folder = folder
        self.server = ServerProcess(folder, SERVER_ARGUMENTS)
        self.workers: dict[str, Worker] = {}
        self.members: dict[str, list[str]] = {KAFKA_GROUP: [], GRPC_GROUP: []}
        self.ledgers = {KAFKA_GROUP: Ledger(), GRPC_GROUP: Ledger()}
        self.changes: list[Change] = []
        self.failures: list[str] = []
        self.outage: Outage | None = None
        self.screen = Screen(self.pictures, self.began_s)
        self._producer: TrickleProducer | None = None
        self._observer: Observer | None = None
        self._audit: Audit | None = None

    # ----------------------------------------------------------------------------- the script

    async def play(self) -> None:
        """Run the script from the first start of the server to the end. Raises ``SceneFailed``."""
        await self._begin()
        await self._join("three consumers and a member join", ("kafka-1", "kafka-2", "kafka-3"))
        await self._join("a fourth consumer joins", ("kafka-4",))
        await self._join("a second member joins over gRPC", (), ("grpc-2",))
        await self._kill_member("kafka-2")
        await self._kill_server()
        rest_s = self.began_s + LENGTH_S - time.monotonic()
        if rest_s > 0:
            await asyncio.sleep(rest_s)

    async def _begin(self) -> None:
        self.screen.say("starting a server with an empty store")
        await self.server.start()
        addresses = self.server.addresses
        self.screen.say(
            f"listening: Kafka {addresses['kafka']}, gRPC {addresses['grpc']}, "
            f"HTTP {addresses['http']}; topic {TOPIC} has {PARTITIONS} partitions; session timeout "
            f"for this demo {SESSION_TIMEOUT_MS / 1000:.0f} s instead of 45 s"
        )
        self._observer = Observer(addresses["grpc"], (KAFKA_GROUP, GRPC_GROUP))
        self._observer.start()
        self._audit = Audit(addresses["grpc"], AUDIT_GROUP, TOPIC)
        self._audit.start()
        self._producer = TrickleProducer(addresses["kafka"], TOPIC, PARTITIONS)
        self._producer.start()
        self.screen.start()
        await self._start_worker("grpc-1", GRPC_GROUP)

    async def _join(
        self, title: str, kafka: tuple[str, ...], members: tuple[str, ...] = ()
    ) -> None:
        """Start workers, and wait until their groups have settled."""
        self.screen.say(title)
        for name in kafka:
            await self._start_worker(name, KAFKA_GROUP)
        for name in members:
            await self._start_worker(name, GRPC_GROUP)
        is_first = not self.changes
        for group_id, names in ((KAFKA_GROUP, kafka), (GRPC_GROUP, members)):
            joined = ("grpc-1",) if is_first and group_id == GRPC_GROUP else names
            if joined:
                title = f"{', '.join(joined)} joined {group_id}"
                await self._settle(title, group_id, partial(self._joined_at, group_id, joined))
        await asyncio.sleep(HOLD_S)

    async def _kill_member(self, name: str) -> None:
        """Kill a consumer: its partitions move when its session times out."""
        self.screen.say(f"{name} is killed (SIGKILL)", "red")
        at_s = time.monotonic()
        died_s = await self.workers[name].kill()
        self.ledgers[KAFKA_GROUP].note_death(name, died_s)
        self.members[KAFKA_GROUP].remove(name)
        del self.workers[name]
        note = f"session timeout {SESSION_TIMEOUT_MS / 1000:.0f} s, counted from its last heartbeat"
        await self._settle(f"{name} was killed", KAFKA_GROUP, lambda: at_s, note)
        await asyncio.sleep(HOLD_S)

    async def _kill_server(self) -> None:
        """Kill the server, and start another one on the same folder."""
        assert self.server.process is not None
        assert self._audit is not None
        audit = self._audit
        before = self._views()
        self.screen.say("the server is killed (SIGKILL)", "red")
        killed_s = time.monotonic()
        await self.server.process.kill()
        await audit.pause()
        await self.server.start()
        back_s = time.monotonic()
        found = {group_id: await audit.fetch(group_id) for group_id in self.ledgers}
        audit_found = (await audit.fetch()).get(0, -1)
        self.screen.say(f"it is back on the same folder after {back_s - killed_s:.1f} s")
        acknowledged_again_s = await self._wait_for_commits(back_s)
        committed = {g: ledger.committed(killed_s) for g, ledger in self.ledgers.items()}
        await asyncio.sleep(HOLD_S)
        after = self._views(newer_than_s=back_s)
        self.outage = Outage(
            down_s=back_s - killed_s,
            committed=committed,
            commits=sum(ledger.count_commits(killed_s) for ledger in self.ledgers.values()),
            found=found,
            audit_acknowledged=audit.acknowledged,
            audit_attempted=audit.attempted,
            audit_found=audit_found,
            epochs_before={group_id: view.epochs() for group_id, view in before.items()},
            epochs_after={group_id: view.epochs() for group_id, view in after.items()},
            moves=sum(
                len(event.partitions)
                for ledger in self.ledgers.values()
                for event in ledger.moves(killed_s, float("inf"))
            ),
        )
        self._note_outage(acknowledged_again_s, killed_s)

    def _note_outage(self, acknowledged_again_s: float | None, killed_s: float) -> None:
        took_s = None if acknowledged_again_s is None else acknowledged_again_s - killed_s
        note = "until every worker had a commit acknowledged again"
        change = Change("the server was killed and restarted", "", took_s, 0, note)
        self.changes.append(change)
        self._say_change(change)

    # ------------------------------------------------------------------------- implementation

    async def _start_worker(self, name: str, group_id: str) -> None:
        addresses = self.server.addresses
        module, where = "cli.demo.kafka_worker", [addresses["kafka"]]
        if group_id == GRPC_GROUP:
            module, where = "cli.demo.grpc_worker", [addresses["grpc"], addresses["kafka"]]
        worker = Worker(name, module, name, *where, group_id, TOPIC, folder=self.folder)
        self.workers[name] = worker
        self.members[group_id].append(name)
        await worker.start_recording(self.ledgers[group_id].add)

    def _joined_at(self, group_id: str, names: Collection[str]) -> float:
        """When the first of them asked to join; the start of Python does not count."""
        ledger = self.ledgers[group_id]
        times = [ledger.first(name, Kind.JOINING) for name in names]
        return min((at_s for at_s in times if at_s is not None), default=time.monotonic())

    async def _settle(
        self, title: str, group_id: str, find_began_s: Callable[[], float], note: str = ""
    ) -> None:
        """Wait until a group has settled, and record how long the change took."""
        asked_s = time.monotonic()
        has_settled = await self._wait(lambda: self._is_settled(group_id, asked_s))
        began_s = find_began_s()
        moves = self.ledgers[group_id].moves(began_s, float("inf"))
        took_s = moves[-1].at_s - began_s if moves and has_settled else None
        moved = sum(len(event.partitions) for event in moves if event.kind is Kind.ASSIGNED)
        change = Change(title, group_id, took_s, moved, note)
        self.changes.append(change)
        self._say_change(change)

    def _is_settled(self, group_id: str, since_s: float) -> bool:
        """Whether server and workers agree on one owner for each partition, at the target."""
        assert self._observer is not None
        view = self._observer.latest.get(group_id)
        if view is None or view.at_s < since_s:
            return False
        if not is_settled(view, self.members[group_id], PARTITIONS):
            return False
        by_server = {n: member.name for member in view.members for n in member.assigned}
        return by_server == self.ledgers[group_id].owners_now()

    async def _wait_for_commits(self, since_s: float) -> float | None:
        """When every worker had a commit acknowledged after a moment."""

        def times() -> list[float | None]:
            return [
                min(
                    (
                        event.at_s
                        for event in self.ledgers[group_id].events
                        if event.worker == name
                        and event.kind is Kind.COMMITTED
                        and event.at_s > since_s
                    ),
                    default=None,
                )
                for group_id, names in self.members.items()
                for name in names
            ]

        await self._wait(lambda: None not in times())
        found = times()
        return None if None in found else max(at_s for at_s in found if at_s is not None)

    async def _wait(self, condition: Callable[[], bool]) -> bool:
        deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
        while not condition():
            self._notice_failures()
            if time.monotonic() > deadline_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _notice_failures(self) -> None:
        for name, worker in self.workers.items():
            if worker.exit_code is not None:
                self.failures.append(f"{name} ended with {worker.exit_code}: {worker.tail()}")
        if self.failures:
            raise SceneFailed

    def _views(self, newer_than_s: float = 0.0) -> dict[str, GroupView]:
        assert self._observer is not None
        return {
            group_id: view
            for group_id, view in self._observer.latest.items()
            if view.at_s > newer_than_s
        }

    def _say_change(self, change: Change) -> None:
        took = "did not settle" if change.converged_s is None else f"{change.converged_s:.2f} s"
        self.screen.say(f"{change.title}: {took}, {change.moved} partitions assigned", "green")
        if not self.screen.console.is_terminal:
            for picture in self.pictures():
                if change.group_id in ("", picture.title.split()[0]):
                    for line in describe_group(picture):
                        self.screen.print(f"         {line}")

    def pictures(self) -> list[GroupPicture]:
        """The groups as they are now, for the screen."""
        latest = self._observer.latest if self._observer is not None else {}
        ends = dict(self._producer.end_offsets) if self._producer is not None else {}
        pictures = []
        for group_id, ledger in self.ledgers.items():
            committed = ledger.committed_now()
            lags = {n: max(end - committed.get(n, 0), 0) for n, end in ends.items()}
            pictures.append(GroupPicture(TITLES[group_id], latest.get(group_id), lags))
        return pictures

    # ------------------------------------------------------------------------------------ end

    async def finish(self) -> None:
        """Stop workers and producer as users would."""
        if self._producer is not None:
            await asyncio.to_thread(self._producer.stop)
        if self._observer is not None:
            await self._observer.stop()
        running = {name: worker for name, worker in self.workers.items() if not worker.exit_code}
        codes = await asyncio.gather(*(worker.terminate() for worker in running.values()))
        for (name, worker), code in zip(running.items(), codes, strict=True):
            if code != 0:
                self.failures.append(f"{name} ended with {code}: {worker.tail()}")
        self.workers.clear()

    async def abandon(self) -> None:
        """Leave no process behind, whatever happened."""
        self.screen.stop()
        for process in (*self.workers.values(), self.server.process):
            if process is not None and process.exit_code is None:
                await process.kill()
        if self._observer is not None:
            await self._observer.stop()
        if self._audit is not None:
            await self._audit.close()
        if self._producer is not None:
            await asyncio.to_thread(self._producer.stop)

    def checks(self) -> list[Check]:
        """The checks, computed from what was recorded."""
        assert self._observer is not None
        assert self._producer is not None
        ownerships = {group_id: ledger.ownerships() for group_id, ledger in self.ledgers.items()}
        checks = [check_one_owner(ownerships, self._observer.double, self._observer.polls)]
        if self.outage is not None:
            checks += [check_commits(self.outage), check_restart(self.outage)]
        checks.append(check_converged(self.changes))
        checks.append(
            check_workers(self.failures, self._producer.acknowledged, self._producer.failed)
        )
        return checks

    def print_summary(self, checks: list[Check]) -> None:
        """Print the summary."""
        print_summary(self.screen, checks, "how long each change took to converge", self.changes)
