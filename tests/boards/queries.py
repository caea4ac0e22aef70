"""The queries of the boards and of the rules, as Prometheus takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.groups import CHECKOUT

BOARDS: Final = CHECKOUT / "boards"
RULES: Final = BOARDS / "alerts.yml"
_VARIABLES: Final = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*", "$group": ".*"}
_METRIC: Final = re.compile(r"(?<![\w:])muster_[a-z0-9_]+")
_PARTS_OF_HISTOGRAMS: Final = ("_bucket", "_count", "_sum")


class Query(NamedTuple):
    """A query, and where it stands."""

    where: str
    promql: str


def list_boards() -> list[Path]:
    """The boards."""
    return sorted(BOARDS.glob("*.json"))


def read_panels(board: Path) -> Iterator[dict[str, Any]]:
    """The panels of a board, without its headings."""
    for panel in json.loads(board.read_text())["panels"]:
        if panel["type"] != "row":
            yield panel


def read_board_queries(board: Path) -> Iterator[Query]:
    """With values for what Grafana puts in."""
    for panel in read_panels(board):
        for target in panel["targets"]:
            promql = target["expr"]
            for name, value in _VARIABLES.items():
                promql = promql.replace(name, value)
            yield Query(f"{board.name}: {panel['title']}", promql)


def read_rules() -> Iterator[dict[str, Any]]:
    """Recording and alert rules."""
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


def read_rule_queries() -> Iterator[Query]:
    """Their expressions."""
    for rule in read_rules():
        yield Query(rule.get("alert") or rule["record"], rule["expr"])


def find_metrics(promql: str) -> set[str]:
    """The metrics of ours that a query names, as docs/metrics.md lists them."""
    found = set()
    for name in _METRIC.findall(promql):
        for part in _PARTS_OF_HISTOGRAMS:
            if name.endswith(f"_seconds{part}"):
                name = name.removesuffix(part)
        found.add(name)
    return found
