"""`muster group reset` and `seek`."""
