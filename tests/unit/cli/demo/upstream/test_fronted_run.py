"""`muster demo --upstream` on a machine that lacks something."""

import pytest

from cli.demo.kafka import classic_broker
from cli.demo.kafka.prerequisites import MissingPrerequisite
from cli.errors import ExitCode
from tests.unit.cli.admin.test_admin_commands import invoke


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise MissingPrerequisite("needs java of Java 17: install a JRE")

    monkeypatch.setattr(classic_broker, "check_java", missing)
    result = invoke("demo", "--upstream")
    assert result.exit_code == ExitCode.PRECONDITION
    assert result.error == "the demo needs java of Java 17: install a JRE"
