"""Requests of all APIs and RPCs, made from a seed: well-formed and nearly so, in sequences.

    python -m tests.fuzz [--minutes M] [--seed N] [--door wire|grpc]     (make fuzz MINUTES=)

A sequence is made from one seed; what fails is run again with `--only SEED`. Laws: each request is
answered or its connection is closed; nobody is told UNKNOWN_SERVER_ERROR, UNKNOWN or INTERNAL; the
server shows no traceback; it serves a valid client after each sequence; what it says of its groups
is what it says of them after a restart.
"""
