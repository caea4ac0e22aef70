"""`muster whatif`: what a change would do to a group."""
