"""Messages of `muster.v1` to commands, responses to messages, errors, pages."""
