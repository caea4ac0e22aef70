"""Frames of a relay connection: their heads, groups' requests, and which wait for an answer."""
