"""APIs of groups and their members, of both protocols."""
