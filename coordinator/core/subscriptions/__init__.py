"""Regular expressions in subscriptions: their cost, the topics they match, and their changes."""
