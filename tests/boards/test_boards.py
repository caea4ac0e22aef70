"""Boards, rules and the runbook fit each other and the metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.boards.queries import (
    BOARDS,
    RULES,
    find_metrics,
    list_boards,
    read_board_queries,
    read_panels,
    read_rule_queries,
    read_rules,
)
from tests.groups import CHECKOUT

RUNBOOK = CHECKOUT / "docs/runbook.md"
UNIT_TESTS = Path(__file__).with_name("rules_test.yml")


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    """Prometheus' own tool; without it the test is skipped."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool: install prometheus")
    return subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=120, check=False
    )


def test_boards_are_what_their_panels_say() -> None:
    command = [sys.executable, str(CHECKOUT / "tools/generate_boards.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("board", list_boards(), ids=lambda board: board.stem)
def test_a_board_is_one_that_grafana_loads(board: Path) -> None:
    loaded = json.loads(board.read_text())
    assert loaded["uid"] == board.stem
    assert loaded["schemaVersion"] >= 36
    numbers = [panel["id"] for panel in loaded["panels"]]
    assert len(set(numbers)) == len(numbers)
    variables = {variable["name"] for variable in loaded["templating"]["list"]}
    cells: set[tuple[int, int]] = set()
    for panel in read_panels(board):
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"], panel["title"]
        assert panel["targets"], panel["title"]
        place = panel["gridPos"]
        taken = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies over another panel"
        assert place["x"] + place["w"] <= 24
        cells |= taken
        named = set(re.findall(r"\$(\w+)", "".join(each["expr"] for each in panel["targets"])))
        assert named - {"__rate_interval"} <= variables


def test_queries_name_metrics_that_there_are() -> None:
    listed = set(
        re.findall(r"^\| `(muster_\w+)`", (CHECKOUT / "docs/metrics.md").read_text(), re.MULTILINE)
    )
    queries = [query for board in list_boards() for query in read_board_queries(board)]
    assert queries
    for query in [*queries, *read_rule_queries()]:
        assert find_metrics(query.promql) <= listed, query.where


def test_every_alert_has_an_entry_in_the_runbook_and_a_test() -> None:
    alerts = {rule["alert"]: rule for rule in read_rules() if "alert" in rule}
    entries = re.findall(r"^### (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert entries == list(alerts)
    for name, rule in alerts.items():
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
    fired = set()
    for test in yaml.safe_load(UNIT_TESTS.read_text())["tests"]:
        fired |= {
            each["alertname"] for each in test.get("alert_rule_test", ()) if each["exp_alerts"]
        }
        for each in test.get("promql_expr_test", ()):
            if each["exp_samples"]:
                fired |= set(re.findall(r'alertname="(\w+)"', each["expr"]))
    assert fired == set(alerts)


def test_prometheus_takes_the_rules() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(list(read_rules()))} rules found" in done.stdout


def test_alerts_fire_for_what_they_are_for(tmp_path: Path) -> None:
    cases = tmp_path / "rules.yml"
    cases.write_text(UNIT_TESTS.read_text().replace("BOARDS", str(BOARDS)))
    done = promtool("test", "rules", str(cases))
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_that_fire_wrongly_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "alerts.yml").write_text(RULES.read_text().replace("lag_seconds > 300", "lag > 0"))
    unit_tests = yaml.safe_load(UNIT_TESTS.read_text().replace("BOARDS", str(tmp_path)))
    unit_tests["tests"] = [each for each in unit_tests["tests"] if "behind" in each["name"]]
    cases = tmp_path / "rules.yml"
    cases.write_text(yaml.safe_dump(unit_tests))
    done = promtool("test", "rules", str(cases))
    assert done.returncode == 1
    assert "MusterGroupBehind" in done.stderr + done.stdout
