"""Whether all cases are to run, as `make upstream` asks."""

from __future__ import annotations

import os
from typing import Final

ALL: Final = os.environ.get("UPSTREAM") == "all"
