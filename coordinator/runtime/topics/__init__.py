"""Topics at run time: the image for all, refreshes, offsets of deleted topics, and patterns."""
