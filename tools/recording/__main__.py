"""Records half a minute with a real server and real consumers.

    python -m tools.recording docs/recording.svg

A group is watched while a consumer joins and another one is killed; then `muster why` says what it
was, and `muster whatif` what one more would move. Nothing is acted: what is seen was printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.groups import CHECKOUT
from tests.server import MusterServer
from tools.recording.animation import render
from tools.recording.session import Session
from tools.recording.terminal import Terminal

COLUMNS, ROWS = 112, 26
BYTES_MAX = 300_000
TITLE = "muster: a group is watched, a consumer joins, another one is killed"
SETTINGS = {
    "group.consumer.min.session.timeout.ms": 3_000,
    "group.consumer.session.timeout.ms": 4_000,
    "group.consumer.heartbeat.interval.ms": 1_000,
}
CONSUMER = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "billing",
                     "group.protocol": "consumer", "client.id": sys.argv[2]})
consumer.subscribe(["orders"])
while True:
    consumer.poll(0.1)
"""


class Scene:
    """A server, its consumers, and a terminal."""

    def __init__(self, folder: Path, server: MusterServer) -> None:
        self._server = server
        self._consumers: dict[str, subprocess.Popen[bytes]] = {}
        wrapper = folder / "muster"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m cli "$@"\n')
        wrapper.chmod(0o755)
        self._environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk",
            "MUSTER_SERVER": server.grpc,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PS1": r"\[\e[92m\]$\[\e[0m\] ",
            "HOME": str(folder),
        }
        self.terminal = Terminal(COLUMNS, ROWS)
        self.session = Session(self.terminal, self._environment, folder)

    def begin_consumer(self, name: str) -> None:
        command = [sys.executable, "-c", CONSUMER, self._server.kafka, name]
        self._consumers[name] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill_consumer(self, name: str) -> None:
        self._consumers[name].kill()

    def play(self) -> float:
        """All of it; when it was over."""
        session = self.session
        session.begin()
        session.type("muster group watch billing\n")
        session.wait_for("│ till-2", 20)
        session.wait(2.0)
        self.begin_consumer("till-3")
        session.wait_for("(client till-3", 20)
        session.wait(3.0)
        self.kill_consumer("till-1")
        session.wait(7.5)
        session.type("\x03")
        session.wait(1.0)
        session.type("muster why billing | head -3\n")
        session.wait(4.5)
        session.type("muster whatif billing --add 1\n")
        session.wait(4.0)
        return session.now_s

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.kill()
            consumer.wait()
        self.session.close()


def main() -> None:
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with MusterServer(folder / "data", topics={"orders": 6}, settings=SETTINGS) as server:
            scene = Scene(folder, server)
            try:
                for each in ("till-1", "till-2"):
                    scene.begin_consumer(each)
                scene.session.wait(4.0)
                end_s = scene.play()
            finally:
                scene.close()
    picture = render(scene.terminal, end_s, TITLE)
    if len(picture.encode()) > BYTES_MAX:
        sys.exit(
            f"the recording has {len(picture.encode())} bytes, at most {BYTES_MAX} are allowed"
        )
    target.write_text(picture, encoding="utf-8")
    print(f"{target}: {end_s:.0f} s, {len(picture.encode()) // 1000} kB")


if __name__ == "__main__":
    main()
