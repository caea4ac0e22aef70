"""What docs/migration.md shows is run, in its order, on a group that takes the steps meanwhile."""

import re
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer

from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.waiting import poll_until
from translator.readiness import Hindrance

GUIDE = (CHECKOUT / "docs" / "migration.md").read_text()
COMMANDS = re.findall(r"^ *(muster .*)$", GUIDE, re.MULTILINE)
GROUP = "orders-app"


def run(command: str, *options: str) -> str:
    words = command.split()
    assert words[0] == "muster"
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words[1:], *options],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def make_consumer(server: MusterServer, protocol: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": GROUP,
            "client.id": protocol,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            **(
                {
                    "partition.assignment.strategy": "cooperative-sticky",
                    "heartbeat.interval.ms": 300,
                }
                if protocol == "classic"
                else {}
            ),
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def test_the_guide_is_followed(tmp_path: Path) -> None:
    plan, offsets, status, back, again, offline = COMMANDS
    settings = {"group.initial.rebalance.delay.ms": 0}
    with MusterServer(tmp_path / "data", topics={"orders": 4}, settings=settings) as server:
        asked = ("--server", server.grpc)
        old = make_consumer(server, "classic")
        poll_until([old], lambda: len(old.assignment()) == 4)
        assert run(plan, *asked).startswith(f"{GROUP}: ")
        assert "BLOCKED" not in run(plan, *asked)
        assert run(offsets, *asked)
        new = make_consumer(server, "consumer")
        poll_until([old, new], lambda: len(old.assignment()) == len(new.assignment()) == 2)
        assert "1 of 2 members speak the consumer protocol, 1 to replace" in run(status, *asked)
        old.close()
        poll_until([new], lambda: len(new.assignment()) == 4)
        assert "1 of 1 members speak the consumer protocol, 0 to replace" in run(status, *asked)
        assert "the last of these 1 members leaves" in run(back, *asked)
        old = make_consumer(server, "classic")
        poll_until([old, new], lambda: len(old.assignment()) == len(new.assignment()) == 2)
        new.close()
        poll_until([old], lambda: len(old.assignment()) == 4)
        assert f"{GROUP}: Classic, Stable" in run(status, *asked)
        old.close()
        run(again, *asked)
        new = make_consumer(server, "consumer")
        poll_until([new], lambda: len(new.assignment()) == 4)
        new.close()
        assert f"{GROUP}: Consumer, Empty" in run(status, *asked)
        server.terminate()
        folder = str(server.data_dir)
        assert "is a classic group" in run(offline.removesuffix("data") + folder)
        server.start()
        assert f"{GROUP}: Classic, Empty" in run(status, "--server", server.grpc)


def test_the_guide_explains_what_a_plan_can_say() -> None:
    table = GUIDE.partition("## What the plan says")[2].partition("## Settings")[0]
    named = set(re.findall(r"`([a-z_]+)`", table))
    assert {hindrance.value for hindrance in Hindrance} <= named
