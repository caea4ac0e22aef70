"""Time, slices of long work, counters, and what the machine has left."""
