"""The command line, and the server that `muster serve` runs."""
