"""`muster group`: one module for each command."""
