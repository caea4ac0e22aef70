"""OffsetCommit by hand, what is kept of the last one, and refusals of whole commits."""
