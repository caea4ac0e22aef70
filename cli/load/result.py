"""Prints the result of a load test, and compares it with what was expected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cli.load.figures.figures import compute_expected, compute_report
from cli.load.figures.view import compute_limit_note, compute_summary
from cli.load.options.expectations import Expectation
from cli.load.run import Result
from cli.output import ENVELOPE_VERSION, print_note


def print_result(
    result: Result, expectations: Sequence[Expectation], *, as_json: bool
) -> list[str]:
    """Print the result to standard output; return a line for each failed expectation."""
    measured = compute_expected(result.figures, result.seconds)
    failed = [line for each in expectations if (line := each.check(measured)) is not None]
    if as_json:
        print(json.dumps(compute_content(result, failed), indent=2))
    else:
        for line in compute_summary(result.plan, result.figures, result.seconds):
            print(line)
    note = compute_limit_note(result.figures, result.seconds, result.processes)
    for line in (*result.failures, *filter(None, (note,))):
        print_note(f"muster: {line}")
    return failed


def compute_content(result: Result, failed: Sequence[str]) -> dict[str, Any]:
    """The result for programs; no user name, password or file of keys is in it."""
    plan = result.plan.dump()
    del plan["security"]
    return {
        "_command": "load",
        "_version": ENVELOPE_VERSION,
        "plan": {**plan, "processes": result.processes},
        "interrupted": result.is_interrupted,
        "joining_errors": result.joining_errors,
        **compute_report(result.figures, result.seconds),
        "failures": list(result.failures),
        "failed_expectations": list(failed),
    }
