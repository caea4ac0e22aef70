"""Actions on a group, as they are shown: before, after, and what can be done at all."""
