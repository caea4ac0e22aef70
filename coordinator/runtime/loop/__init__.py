"""The event loop's time: slices of work, disk space, counters."""
