"""``pytest tests/scenarios --rewrite`` records the scenarios anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="record the scenarios anew")
