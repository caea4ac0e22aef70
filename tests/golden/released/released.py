"""The last release as files: its server's code, and a store that it has written.

    python tests/golden/released/released.py COMMIT

makes both anew: ``code.tar.xz`` (what the server needs of that commit), ``store.tar.xz`` (the data
folder as a killed server left it) and ``seen.json`` (what was in it). Do so when a version is
released, and set ``COMMIT``.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from cli.main import make_app
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.waiting import poll_until

COMMIT = "431dad14"
"""Released as 0.1.0."""
FORMAT = 4
"""Of the store that it writes."""
FOLDER = Path(__file__).parent
CODE, STORE, SEEN = FOLDER / "code.tar.xz", FOLDER / "store.tar.xz", FOLDER / "seen.json"
PACKAGES = ("cli", "coordinator", "gateway", "model", "security", "storage", "translator")
LEFT_OUT = ("cli/admin", "cli/demo", "cli/load", "cli/log", "cli/pipeline", "cli/submit",
            "cli/upstream")  # fmt: skip
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 8}
NOT_DATA = ("endpoints.json", "reserve")


class ReleasedServer(MusterServer):
    """A server of the released code, which is unpacked in ``code``."""

    def __init__(self, data_dir: Path, code: Path, **options: Any) -> None:
        super().__init__(data_dir, environment={"PYTHONPATH": str(code)}, **options)

    def compute_command(self) -> list[str]:
        return [sys.executable, str(FOLDER / "server.py"), f"--data-dir={self.data_dir}"]


def unpack_code(folder: Path) -> Path:
    """The released code, to be put on PYTHONPATH."""
    return unpack(CODE, folder)


def unpack_store(folder: Path) -> Path:
    """A data folder of the release, as a killed server left it."""
    return unpack(STORE, folder)


def unpack(path: Path, folder: Path) -> Path:
    # Python 3.11.4 and later ask for a filter.
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(path) as archive:
        archive.extractall(folder, **options)
    return folder


def ask(server: MusterServer, *words: str) -> Any:
    """What a command of this version prints of a server of any, as JSON."""
    return json.loads(run_muster(server, *words, "-o", "json"))


def run_muster(server: MusterServer, *words: str) -> str:
    """The output of a command of this version."""
    done = CliRunner().invoke(make_app(words[0]), [*words, "--server", server.grpc])
    assert done.exit_code == 0, f"{words}\n{done.output}{done.exception}"
    return done.stdout


def look(server: MusterServer) -> dict[str, Any]:
    """What must be the same after an upgrade, and after the way back."""
    topics = ask(server, "topic", "list")["topics"]
    groups = ask(server, "group", "describe", "--all")["groups"]
    offsets = {
        name: ask(server, "group", "offsets", name)["offsets"]
        for name in ("billing", "legacy", "stored")
    }
    users = ask(server, "user", "list")["users"]
    return {
        "topics": {
            each["topic_name"]: [each["topic_id"], each["num_partitions"]] for each in topics
        },
        "groups": {group["group_id"]: describe(group) for group in groups},
        "offsets": {
            name: {
                f"{row['topic']}-{row['partition']}": [row["offset"], row["metadata"]]
                for row in rows
                if row["offset"] is not None
            }
            for name, rows in offsets.items()
        },
        "users": sorted(str(user["name"]) for user in users),
    }


def describe(group: dict[str, Any]) -> dict[str, Any]:
    """What a restart must leave: the epoch, and who has which partitions."""
    return {
        "type": group["group_type"],
        "epoch": group["group_epoch"],
        "members": {
            member["instance_id"] or member["member_id"]: {
                topic["topic_name"]: topic["partitions"] for topic in member["assignment"]
            }
            for member in group["members"]
        },
    }


def fill(server: MusterServer) -> list[Consumer]:
    """Groups of each kind; the members go on living."""
    producer = Producer({"bootstrap.servers": server.kafka})
    for number in range(40):
        producer.produce("orders", f"order {number}".encode(), partition=number % 4)
    producer.flush()
    consumers = [
        make_consumer(server, "billing", "consumer", "till-1"),
        make_consumer(server, "billing", "consumer"),
        make_consumer(server, "legacy", "classic"),
    ]
    poll_until(consumers, lambda: [len(each.assignment()) for each in consumers] == [2, 2, 4])
    for consumer, offset in zip(consumers, (7, 8, 9), strict=True):
        partitions = consumer.assignment()
        marked = [
            TopicPartition(each.topic, each.partition, offset, metadata=f"by {offset}")
            for each in partitions
        ]
        consumer.commit(offsets=marked, asynchronous=False)
    alone = Consumer({"bootstrap.servers": server.kafka, "group.id": "stored"})
    alone.commit(offsets=[TopicPartition("payments", 1, 5)], asynchronous=False)
    alone.close()
    return consumers


def make_consumer(server: MusterServer, group: str, protocol: str, instance: str = "") -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **({"group.instance.id": instance} if instance else {}),
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def pack_code(commit: str) -> None:
    paths = (*PACKAGES, "sdk/muster")
    archived = subprocess.run(
        ["git", "archive", commit, *paths], cwd=CHECKOUT, capture_output=True, check=True
    )
    with (
        tarfile.open(fileobj=io.BytesIO(archived.stdout)) as source,
        tarfile.open(CODE, "w:xz") as packed,
    ):
        for entry in source:
            is_code = entry.isfile() and entry.name.endswith(".py")
            entry.name = entry.name.removeprefix("sdk/")
            if is_code and not entry.name.startswith(LEFT_OUT):
                packed.addfile(entry, source.extractfile(entry))


def pack_store(data: Path) -> None:
    with tarfile.open(STORE, "w:xz") as packed:
        for path in sorted(data.iterdir()):
            if path.name not in NOT_DATA:
                packed.add(path, path.name)


def main() -> None:
    import tempfile

    pack_code(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        code = unpack_code(Path(folder) / "code")
        data = Path(folder) / "data"
        with ReleasedServer(data, code, settings=SETTINGS) as server:
            for topic in ("orders=4", "payments=2"):
                run_muster(server, "topic", "create", topic)
            secret = Path(folder) / "password"
            secret.write_text("a password of alice\n")
            run_muster(server, "user", "create", "alice", "--password-file", str(secret))
            consumers = fill(server)
            seen = look(server)
            server.kill()
            for consumer in consumers:
                consumer.close()
        SEEN.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
        pack_store(data)


if __name__ == "__main__":
    main()
