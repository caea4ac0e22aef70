"""APIs of topics and their records."""
