"""`muster serve`: assembles the server and runs it as a process."""
