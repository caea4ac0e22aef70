"""What a load test is to do: its options, checked, and what is expected of the server."""
