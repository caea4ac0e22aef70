"""`muster group reset`, `seek` and `undo`."""
