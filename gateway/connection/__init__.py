"""One connection: frames, the order of answers, bounds, and who is cut."""
