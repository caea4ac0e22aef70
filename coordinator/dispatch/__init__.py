"""The entry point of the state machine: maps each command to its handler."""
