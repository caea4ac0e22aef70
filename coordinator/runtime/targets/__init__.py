"""When targets are computed, by which assignor, and how they are installed."""
