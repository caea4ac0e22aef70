"""The one entrance of the state machine: which handler takes which command."""
