"""All clients over all round trips: `python -m tests.latency`, or `make latency`.

In each of many groups one member stays, and another joins, works and closes again and again,
through a proxy that takes its time. Exits with 1 where a client gave a heartbeat up, a leave was
lost or a session ended.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from tests.latency.matrix import CLIENTS, HEADER, burners, measure

ROUND_TRIPS_MS: Final = (0, 20, 100, 200, 300, 800)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.latency")
    parser.add_argument("--clients", default=",".join(CLIENTS), help="with commas between them")
    parser.add_argument(
        "--round-trips", default=",".join(map(str, ROUND_TRIPS_MS)), help="milliseconds"
    )
    parser.add_argument("--closes", type=int, default=200, help="of each client at each of them")
    parser.add_argument("--groups", type=int, default=20, help="that run at once")
    parser.add_argument("--jitter", type=float, default=0.2, help="part of the round trip")
    parser.add_argument("--busy", type=int, default=0, help="processes that burn a CPU beside")
    parser.add_argument("--timeout", type=float, default=1_200.0, help="seconds for a row")
    given = parser.parse_args()
    rounds = -(-given.closes // given.groups)
    is_right = True
    print(f"jitter {given.jitter:.0%}, {given.busy} processes beside", flush=True)
    print(HEADER, flush=True)
    with burners(given.busy):
        for client in given.clients.split(","):
            for round_trip_ms in map(int, given.round_trips.split(",")):
                cell = measure(
                    client,
                    round_trip_ms,
                    jitter=given.jitter,
                    groups=given.groups,
                    rounds=rounds,
                    timeout_s=given.timeout,
                )
                is_right &= cell.is_right(rounds * given.groups)
                print(cell.row(), flush=True)
    print("as promised" if is_right else "a promise is broken")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
