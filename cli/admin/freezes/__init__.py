"""`muster group freeze` and `resume`."""
