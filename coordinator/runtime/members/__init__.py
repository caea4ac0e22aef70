"""Members at run time: deadlines, watches, and tickets of repeated heartbeats."""
