"""`muster pipeline`: analyse and import logs with Spark."""
