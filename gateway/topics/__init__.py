"""Topics whose records this server stores: small and bounded, not a message store."""
