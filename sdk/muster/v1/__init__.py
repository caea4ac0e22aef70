"""Generated from proto/muster/v1."""
