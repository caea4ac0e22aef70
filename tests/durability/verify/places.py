"""At how many places each kind of corruption is planted: ``CORRUPTION_PLACES``, or a sample."""

from __future__ import annotations

import os

SAMPLE = 50
PLACES = int(os.environ.get("CORRUPTION_PLACES", SAMPLE))
