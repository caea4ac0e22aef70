"""The audit log as a whole: what it is told is written, and nobody waits for it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CommandError
from cli.serve.audit.audit_log import AuditLog, make_audit_log
from cli.serve.audit.sinks import FileSink, StdoutSink
from cli.settings import resolve
from cli.settings.setting_sources import parse_flags
from coordinator.runtime.audit import Change
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from tests.support.waiting import wait_until

CALLER = Caller("User:eve", "client", "/10.0.0.7", ("Group:ops",), "EXTERNAL")


class FakeSink:
    """Keeps lines. It fails while ``error`` is set, and waits while ``gate`` is not."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.opened = 0
        self.looks = 0
        self.error: OSError | None = None
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> None:
        self.opened += 1

    def look(self) -> None:
        self.looks += 1

    def write(self, line: bytes) -> None:
        self.gate.wait()
        if self.error is not None:
            raise self.error
        self.lines.append(json.loads(line))

    def close(self) -> None: ...


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def refuse(log: AuditLog, name: str = "g") -> None:
    log.refused(CALLER, Operation.READ, ResourceType.GROUP, name)


def change(log: AuditLog, name: str = "orders") -> None:
    log.changed(
        CALLER,
        Change("DeleteTopic", Operation.DELETE, ResourceType.TOPIC, name, {"partitions": 3}, None),
    )


def test_each_event_has_who_from_where_and_what() -> None:
    sink, clock = FakeSink(), Clock()
    log = AuditLog(sink, 10, clock)
    refuse(log)
    log.not_authenticated("/10.0.0.8", "EXTERNAL", "PLAIN", "wrong credentials")
    change(log)
    clock.now_s += 1
    assert log.write_due()
    who = {"principal": "User:eve", "groups": ["Group:ops"], "client_id": "client"}
    where = {"host": "10.0.0.7", "listener": "EXTERNAL"}
    changed, refused, failed = sink.lines
    assert refused == {
        "time": "1970-01-01T00:16:40.000Z", "event": "authorization_refused", **who, **where,
        "operation": "READ", "resource_type": "GROUP", "resource_name": "g",
    }  # fmt: skip
    assert failed == {
        "time": "1970-01-01T00:16:40.000Z", "event": "authentication_failed", "host": "10.0.0.8",
        "listener": "EXTERNAL", "mechanism": "PLAIN", "reason": "wrong credentials",
    }  # fmt: skip
    assert changed == {
        "time": "1970-01-01T00:16:40.000Z", "event": "changed", **who, **where,
        "change": "DeleteTopic", "operation": "DELETE", "resource_type": "TOPIC",
        "resource_name": "orders", "before": {"partitions": 3}, "after": None,
    }  # fmt: skip
    assert log.lines == {"authorization_refused": 1, "authentication_failed": 1, "DeleteTopic": 1}


def test_what_a_client_makes_long_is_not_kept() -> None:
    sink, clock = FakeSink(), Clock()
    log = AuditLog(sink, 10, clock)
    caller = Caller("User:" + "e" * 50_000, "c" * 50_000, "/::1", ("Group:g" * 10_000,) * 10_000)
    log.refused(caller, Operation.READ, ResourceType.GROUP, "g" * 50_000)
    clock.now_s += 1
    log.write_due()
    (line,) = sink.lines
    assert len(json.dumps(line)) < 20_000


def test_on_a_full_disk_nothing_stops_and_what_was_lost_is_told() -> None:
    sink, clock = FakeSink(), Clock()
    log = AuditLog(sink, 10_000, clock)
    sink.error = OSError(28, "No space left on device")
    for _ in range(5):
        for number in range(10_000):
            refuse(log, str(number))
        clock.now_s += 1
        assert not log.write_due()
    left_out = log.left_out()["authorization_refused"]
    assert left_out > 30_000
    sink.error = None
    for _ in range(3):
        clock.now_s += 1
        assert log.write_due()
    told = [line["counts"] for line in sink.lines if line["event"] == "left_out"]
    assert sum(counts["authorization_refused"] for counts in told) == left_out
    assert len(told) == 2, "one is there when the disk is back, the other has the rest"
    refused = sum(line["event"] == "authorization_refused" for line in sink.lines)
    assert refused + left_out == 50_000


def test_the_thread_writes_while_others_go_on() -> None:
    sink = FakeSink()
    log = AuditLog(sink, 1_000)
    log.start()
    change(log)
    wait_until(lambda: sink.lines)
    sink.gate.clear()
    for _ in range(500):
        change(log)  # Returns, though nothing is written.
    assert len(sink.lines) == 1
    sink.gate.set()
    wait_until(lambda: len(sink.lines) == 501)
    log.reopen()
    wait_until(lambda: sink.opened == 2)
    refuse(log)
    log.close()
    assert sink.lines[-1]["event"] == "authorization_refused", "a stop waits for no second to end"


def test_a_sink_that_hangs_does_not_keep_the_server_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cli.serve.audit.audit_log.CLOSE_S", 0.05)
    sink = FakeSink()
    log = AuditLog(sink, 1_000)
    log.start()
    sink.gate.clear()
    change(log)
    log.close()
    sink.gate.set()


def resolve_audit(*flags: str) -> object:
    return resolve(parse_flags(flags)).values["audit.log"]


def test_where_it_is_by_default() -> None:
    authorizer = "--authorizer.class.name=StandardAuthorizer"
    assert resolve_audit() is None
    assert resolve_audit(authorizer) == "stdout"
    assert resolve_audit(authorizer, "--audit.log=") is None
    assert resolve_audit(authorizer, "--audit.log=/x/audit.log") == "/x/audit.log"
    assert resolve_audit("--audit.log=stdout") == "stdout"
    assert resolve_audit("--sasl.enabled.mechanisms=PLAIN") == "stdout"


def test_it_is_made_as_the_settings_say(tmp_path: Path) -> None:
    def make(place: str) -> AuditLog | None:
        return make_audit_log(resolve(parse_flags([f"--audit.log={place}"])))

    assert make("") is None
    for place, kind in (("stdout", StdoutSink), (str(tmp_path / "audit.log"), FileSink)):
        log = make(place)
        assert log is not None
        assert isinstance(log._sink, kind)
    with pytest.raises(CommandError, match="is a folder: name a file"):
        make(str(tmp_path))
    nowhere = make(str(tmp_path / "none" / "audit.log"))
    assert nowhere is not None
    with pytest.raises(CommandError, match=r"audit.log cannot be written: .*No such file"):
        nowhere.start()
