"""`muster pipeline …`: a log of groups through Spark."""
