"""What the session streams of the process share: bounds, turns, pings, who speaks for whom."""
