"""The processes of a load test: what each does on a listener or in sessions."""
