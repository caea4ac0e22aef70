"""`muster group watch`: what changes in a group, line by line."""
