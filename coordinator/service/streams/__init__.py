"""What all session streams share: memory bounds, fair scheduling, pings, and who owns a member."""
