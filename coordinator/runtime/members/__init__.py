"""Members at run time: deadlines, watches, and tickets for repeated heartbeats."""
