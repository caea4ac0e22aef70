"""A real broker: start, tools, crash, start again on the same data."""

import json
from pathlib import Path

import pytest

from tests.kafka.broker import BrokerError, KafkaBroker
from tests.kafka.java import run_java
from tests.kafka.tools import run_consumer_groups, run_dump_log, run_topics

pytestmark = [pytest.mark.long, pytest.mark.kafka]

HELLO = """
import org.apache.kafka.common.utils.AppInfoParser;

public final class Hello {
    public static void main(String[] arguments) {
        System.out.println("{\\"kafka\\":\\"" + AppInfoParser.getVersion() + "\\"}");
    }
}
"""


def test_a_broker_serves_and_keeps_its_data_over_a_crash() -> None:
    # The controller turns a restarted broker away until the session of its crashed self is over.
    settings = {"offsets.topic.num.partitions": 3, "broker.session.timeout.ms": 2000}
    with KafkaBroker(settings) as broker:
        created = run_topics(broker.bootstrap, "--create", "--topic", "t", "--partitions", "2")
        assert created.returncode == 0, created.stderr
        assert broker.cpu_seconds() > 0.5
        assert broker.rss_bytes() > 50e6
        broker.kill()
        with pytest.raises(BrokerError, match="not running"):
            broker.cpu_seconds()
        broker.start()
        assert run_topics(broker.bootstrap, "--list").stdout == "t\n"
        assert run_consumer_groups(broker.bootstrap, "--list").returncode == 0
        segment = broker.log_dir / "t-1" / f"{0:020}.log"
        assert "Log starting offset: 0" in run_dump_log("--files", str(segment)).stdout
        folder = broker.folder
    assert not folder.exists()


def test_a_broker_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(BrokerError, match=r"num\.network\.threads"),
        KafkaBroker({"num.network.threads": -1}),
    ):
        pass


def test_java_programs_have_kafkas_classes(tmp_path: Path) -> None:
    (tmp_path / "Hello.java").write_text(HELLO)
    done = run_java(tmp_path, "Hello")
    assert json.loads(done.stdout) == {"kafka": "4.3.0"}, done.stderr
