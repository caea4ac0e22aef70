"""A connection's knowledge of its members: heartbeat intervals, round trip, cached answers."""
