"""What was measured: latencies, rates, errors, and how they are shown."""
