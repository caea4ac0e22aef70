"""Translation between `muster.v1` messages and commands, responses, errors and pages."""
