"""OffsetCommit: hand-written codec, templates of repeated commits, and refusals of whole
commits."""
