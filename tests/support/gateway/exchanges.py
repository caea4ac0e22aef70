"""What real clients and a real broker said to each other, as recorded."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.support.storage.golden import GOLDEN


def load_exchanges() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "wire" / "exchanges.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]
