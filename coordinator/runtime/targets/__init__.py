"""Target assignments: when they are computed, by which assignor, and how they are installed."""
