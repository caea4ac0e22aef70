"""`muster serve`: the server put together, and the process that it runs in."""
