"""As-of reads: a group at a past log position, read by a separate process."""
