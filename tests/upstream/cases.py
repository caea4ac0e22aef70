"""Which cases run: all of them, as `make upstream` asks, or the quick ones."""

from __future__ import annotations

import os
from typing import Final

import pytest

ALL: Final = os.environ.get("UPSTREAM") == "all"
slow = pytest.mark.skipif(not ALL, reason="make upstream runs it")
"""A test that is too long for every run."""
