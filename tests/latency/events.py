"""What a program of many groups prints, one JSON object a line.

In each group one member stays. Another one joins, works for a while and closes, again and again:

    taken   share_ms: until both had their half; after_ms: from the beginning of the close until
            the one that stays had all
    lost    nobody had them in time
    given-up   a client gave a heartbeat up
    late    the two never had their halves; the round is left out
"""

from __future__ import annotations

import argparse
import json
import threading
from typing import Final

PARTITIONS: Final = 4
TAKEN_WITHIN_S: Final = 25.0
"""Well below the session timeout of 45 s."""
SHARED_WITHIN_S: Final = 60.0
WORK_S: Final = (0.5, 2.5)
"""The close is to fall into any part of what goes on between two heartbeats."""

_lock = threading.Lock()


def emit(event: str, **fields: object) -> None:
    """Print an event."""
    with _lock:
        print(json.dumps({"event": event, **fields}), flush=True)


def read_arguments() -> argparse.Namespace:
    """bootstrap, topic, groups, rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    return parser.parse_args()
