"""What every test obeys: a missing peer skips a test, and fails it where peers are required.

With `MUSTER_REQUIRE_PEERS=1`, as continuous integration runs, a skip for want of Java, of a peer
or of a package is a failure. Other skips (a test that the root user cannot run) stay skips.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

from tests.kafka.prerequisites import MissingPrerequisite
from tests.written import check_writers, raise_found

# The examples of a property are the same in every run: what passes once passes again.
hypothesis.settings.register_profile("muster", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("muster")

_PEER_MARKERS = ("kafka", "java")
_MISSING = ("needs ", "could not import")


def peers_required() -> bool:
    """Whether a test that needs a peer must not be skipped."""
    return os.environ.get("MUSTER_REQUIRE_PEERS", "0") not in ("", "0")


def _skip_reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    longrepr = report.longrepr
    reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(reason).removeprefix("Skipped: ")


def _fail_skip(report: pytest.CollectReport | pytest.TestReport) -> None:
    report.outcome = "failed"
    report.longrepr = f"peers are required here, but this was skipped: {_skip_reason(report)}"


def _is_for_want_of_a_peer(item: pytest.Item, report: pytest.TestReport) -> bool:
    if hasattr(report, "wasxfail"):
        return False
    marked = any(item.get_closest_marker(name) for name in _PEER_MARKERS)
    return marked or _skip_reason(report).startswith(_MISSING)


def _run_or_skip() -> Generator[None, object, object]:
    try:
        return (yield)
    except MissingPrerequisite as missing:
        pytest.skip(str(missing))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with the same `xdist_group` go to the same worker.

    xdist 3.8 writes the group behind an item's `_nodeid`, which pytest 9.2 has replaced by `_id`.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and "@" not in item.nodeid:
            item._id = type(item.id).parse(f"{item.nodeid}@{mark.args[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _run_or_skip())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    check_writers()
    result = yield from _run_or_skip()
    raise_found()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and peers_required() and _is_for_want_of_a_peer(item, report):
        _fail_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and peers_required() and _skip_reason(report).startswith(_MISSING):
        _fail_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded as a `note` is shown, also where workers ran them."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "note":
                terminalreporter.write_line(str(value))
