"""APIs of access control."""
