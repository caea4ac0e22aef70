"""OffsetCommit: hand-written codec, templates for repeated commits, refusals of whole commits."""
