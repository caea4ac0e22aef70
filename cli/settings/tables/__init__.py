"""The settings of one subject each."""
