"""What a change would do to a group: computed on a copy, nothing is written."""
